// Who holds the memory at one moment: storages put together by the part of the model that owns them and by what they
// are for. Every byte that is present is in exactly one group.
const MOST_PARTS = 10;

// By module, the part of the model that it is counted with: the root's children; the largest is taken apart as long as
// it holds more than half and what it consists of differs and is little. A list of equal layers says more as one.
export function stagesOf(scene, present) {
  const weight = new Float64Array(scene.modules);
  for (let storage = 0; storage < scene.storages; storage++) weight[scene.storage_module[storage]] += present[storage];
  for (let module = scene.modules - 1; module > 0; module--) weight[scene.parentOf(module)] += weight[module];
  const heads = new Set([0]); // modules that are a part with all below them that is no part of its own
  let parts = [...scene.children(0)];
  let opened = 1;
  for (;;) {
    const largest = parts.reduce((best, module) => (best < 0 || weight[module] > weight[best] ? module : best), -1);
    if (largest < 0 || 2 * weight[largest] <= weight[0]) break;
    const children = [...scene.children(largest)];
    const alike = children.length > 1 && new Set(children.map(child => scene.module_alike[child])).size === 1;
    if (!children.length || alike || opened + parts.length + children.length > MOST_PARTS) break;
    heads.add(largest);
    parts = [...parts.filter(module => module !== largest), ...children];
    opened += 1;
  }
  for (const part of parts) heads.add(part);
  const stage = new Int32Array(scene.modules);
  for (let module = 1; module < scene.modules; module++) {
    stage[module] = heads.has(module) ? module : stage[scene.parentOf(module)];
  }
  return stage;
}

// Groups `{stage, kind, bytes, storages}` of the stays at some time, the largest first.
export function holdersOf(scene, plan, stays, stage) {
  const groups = new Map();
  const seen = new Set();
  for (const stay of stays) {
    const storage = plan.stay_storage[stay];
    if (seen.has(storage) || !scene.bytesOf(storage)) continue;
    seen.add(storage);
    const [owner, kind] = [stage[scene.storage_module[storage]], scene.kindOf(storage)];
    const key = owner * 8 + kind;
    let group = groups.get(key);
    if (!group) groups.set(key, (group = { id: `held ${key}`, stage: owner, kind, bytes: 0, storages: [] }));
    group.bytes += scene.bytesOf(storage);
    group.storages.push(storage);
  }
  return [...groups.values()].sort((a, b) => b.bytes - a.bytes || a.stage - b.stage || a.kind - b.kind);
}
