// The holders of memory at one moment: storages grouped by kind and by the module or line of code that they belong to.
// Every byte that is present is in exactly one group.
// The parts are those that best explain the plan's peak, at every moment.

// Groups `{id, name, kind, bytes, storages}` of the residencies at some time, the largest first.
// `by`: module, line or kind.
export function holdersOf(graphData, plan, residencies, by) {
  const groups = new Map();
  const seen = new Set();
  for (const residency of residencies) {
    const storage = plan.residency_storage[residency];
    if (seen.has(storage) || !graphData.bytesOf(storage)) continue;
    seen.add(storage);
    const part = plan[by + '_part'][storage];
    const [name, kind] = [plan.part_names[by][part], graphData.kindOf(storage)];
    if (!groups.has(part)) groups.set(part, { id: `${kind} ${name}`, name, kind, bytes: 0, storages: [], part });
    const group = groups.get(part);
    group.bytes += graphData.bytesOf(storage);
    group.storages.push(storage);
  }
  for (const group of groups.values()) {
    if (group.storages.length > 1) continue;
    const line = by === 'line' ? graphData.sourceOfStorage(group.storages[0]) : '';
    group.name = `${line} ${graphData.storageName(group.storages[0])}`.trim();
  }
  return [...groups.values()].sort((a, b) => b.bytes - a.bytes || a.part - b.part);
}
