// When the captured step holds the most if nothing is swapped, and what kind of storage holds most of it then.
import { KINDS } from './kinds.js';

const known = new WeakMap();

// `{op, bytes, present, kind, share}` of a scene: `present` are the bytes of each storage that is held then, `share` is
// that kind's part of all bytes.
export function unswappedPeak(scene) {
  if (!known.has(scene)) known.set(scene, find(scene));
  return known.get(scene);
}

function find(scene) {
  const change = new Float64Array(scene.ops + 1);
  for (let storage = 0; storage < scene.storages; storage++) {
    change[scene.storage_birth[storage]] += scene.bytesOf(storage);
    change[scene.storage_end[storage]] -= scene.bytesOf(storage);
  }
  const peak = { op: 0, bytes: 0 };
  for (let op = 0, bytes = 0; op < scene.ops; op++) {
    bytes += change[op];
    if (bytes > peak.bytes) Object.assign(peak, { op, bytes });
  }
  const there = storage => scene.storage_birth[storage] <= peak.op && peak.op < scene.storage_end[storage];
  const present = Float64Array.from(scene.storage_bytes, (bytes, storage) => (there(storage) ? bytes : 0));
  const held = KINDS.map(() => 0);
  present.forEach((bytes, storage) => {
    held[scene.kindOf(storage)] += bytes;
  });
  const kind = held.indexOf(Math.max(...held));
  return { ...peak, present, kind, share: peak.bytes ? held[kind] / peak.bytes : 0 };
}
