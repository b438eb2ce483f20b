// The holders of memory at one moment: storages grouped by kind and by the module or line of code that they belong to.
// Every byte that is present is in exactly one group.
// The parts are those that best explain the plan's peak, at every moment.

const LARGEST_SHARE = 0.25; // of all bytes, of a line that is shown without its parts

// Groups `{id, name, kind, bytes, storages}` of the residencies at some time, the largest first.
// `by`: module, line or kind; by line, there is a group for each line.
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
  const leaves = [...groups.values()];
  if (by === 'line') return byLine(graphData, leaves);
  for (const group of leaves) {
    if (group.storages.length === 1) group.name = graphData.storageName(group.storages[0]);
  }
  return leaves.sort(largestFirst);
}

// A group for each line of code. One that holds more than a quarter is followed by its parts, `{inside: true}`.
function byLine(graphData, leaves) {
  const lines = new Map();
  for (const leaf of leaves.sort(largestFirst)) {
    const line = graphData.sourceOfStorage(leaf.storages[0]);
    if (!lines.has(line)) lines.set(line, { id: `line ${line}`, name: line || 'no known line', bytes: 0, parts: [] });
    const group = lines.get(line);
    group.bytes += leaf.bytes;
    group.parts.push(leaf);
    const tensor = leaf.storages.length === 1 ? graphData.storageName(leaf.storages[0]) : '';
    leaf.name = tensor || leaf.name.slice(line.length).trim() || 'the others';
    leaf.inside = true;
  }
  const most = LARGEST_SHARE * leaves.reduce((sum, leaf) => sum + leaf.bytes, 0);
  for (const group of lines.values()) {
    group.storages = group.parts.flatMap(leaf => leaf.storages);
    const kinds = new Map();
    for (const { kind, bytes } of group.parts) kinds.set(kind, (kinds.get(kind) ?? 0) + bytes);
    [group.kind] = [...kinds].reduce((most, one) => (one[1] > most[1] ? one : most));
    group.mixed = kinds.size > 1;
  }
  return [...lines.values()]
    .sort((a, b) => b.bytes - a.bytes)
    .flatMap(group => [group, ...(group.bytes > most && group.parts.length > 1 ? group.parts : [])]);
}

const largestFirst = (a, b) => b.bytes - a.bytes || a.part - b.part;
