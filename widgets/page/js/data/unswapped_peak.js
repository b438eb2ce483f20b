// What the captured step holds with nothing swapped, at the op at which that is most.

const known = new WeakMap();

// The bytes of each storage of graph data that are held then.
export function unswappedPeak(graphData) {
  if (!known.has(graphData)) known.set(graphData, find(graphData));
  return known.get(graphData);
}

function find(graphData) {
  const change = new Float64Array(graphData.ops + 1);
  for (let storage = 0; storage < graphData.storages; storage++) {
    change[graphData.storage_birth[storage]] += graphData.bytesOf(storage);
    change[graphData.storage_end[storage]] -= graphData.bytesOf(storage);
  }
  const peak = { op: 0, bytes: 0 };
  for (let op = 0, bytes = 0; op < graphData.ops; op++) {
    bytes += change[op];
    if (bytes > peak.bytes) Object.assign(peak, { op, bytes });
  }
  const there = storage => graphData.storage_birth[storage] <= peak.op && peak.op < graphData.storage_end[storage];
  return Float64Array.from(graphData.storage_bytes, (bytes, storage) => (there(storage) ? bytes : 0));
}
