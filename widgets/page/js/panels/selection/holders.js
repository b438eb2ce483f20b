// The holders of memory at one moment: storages grouped by kind and by the part of the model that owns them.
// Every byte that is present is in exactly one group.
// The parts are those that best explain the plan's peak, at every moment.

// Groups `{id, name, kind, bytes, storages}` of the residencies at some time, the largest first.
export function holdersOf(graphData, plan, residencies) {
  const groups = new Map();
  const seen = new Set();
  for (const residency of residencies) {
    const storage = plan.residency_storage[residency];
    if (seen.has(storage) || !graphData.bytesOf(storage)) continue;
    seen.add(storage);
    const part = plan.storage_part[storage];
    const [name, kind] = [plan.part_names[part], plan.part_kind[part]];
    if (!groups.has(part)) groups.set(part, { id: `${kind} ${name}`, name, kind, bytes: 0, storages: [], part });
    const group = groups.get(part);
    group.bytes += graphData.bytesOf(storage);
    group.storages.push(storage);
  }
  for (const group of groups.values()) {
    if (group.storages.length === 1) group.name = graphData.storageName(group.storages[0]);
  }
  return [...groups.values()].sort((a, b) => b.bytes - a.bytes || a.part - b.part);
}
