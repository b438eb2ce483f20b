// The op at which the captured step holds the most with nothing swapped, and the kind of storage that holds most of it.
import { KINDS } from '../core/kinds.js';

const known = new WeakMap();

// `{op, bytes, present, kind, share}` of graph data: `present` are the bytes of each storage held then, `share` is
// that kind's part of all bytes.
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
  const present = Float64Array.from(graphData.storage_bytes, (bytes, storage) => (there(storage) ? bytes : 0));
  const held = KINDS.map(() => 0);
  present.forEach((bytes, storage) => {
    held[graphData.kindOf(storage)] += bytes;
  });
  const kind = held.indexOf(Math.max(...held));
  return { ...peak, present, kind, share: peak.bytes ? held[kind] / peak.bytes : 0 };
}
