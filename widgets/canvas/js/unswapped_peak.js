// When the captured step holds the most if nothing is swapped, and what kind of storage holds most of it then.
import { KINDS } from './kinds.js';

const ALWAYS = new Set(['parameter', 'optimizer_state', 'input']);
const known = new WeakMap();

// `{op, bytes, kind, share}` of a scene; `share` is that kind's part of the bytes.
export function unswappedPeak(scene) {
  if (!known.has(scene)) known.set(scene, find(scene));
  return known.get(scene);
}

function find(scene) {
  // the change of each kind's bytes at each op
  const changes = KINDS.map(() => new Float64Array(scene.ops + 1));
  const held = new Float64Array(KINDS.length);
  for (let storage = 0; storage < scene.storages; storage++) {
    const kind = scene.storage_kind[storage];
    const bytes = scene.storage_bytes[storage];
    if (ALWAYS.has(KINDS[kind])) {
      held[kind] += bytes;
      continue;
    }
    const uses = scene.uses(storage);
    if (!uses.length) continue;
    changes[kind][uses[0]] += bytes;
    changes[kind][uses[uses.length - 1] + 1] -= bytes;
  }
  let peak = { op: 0, bytes: -1, held };
  for (let op = 0; op < scene.ops; op++) {
    let bytes = 0;
    for (let kind = 0; kind < KINDS.length; kind++) bytes += held[kind] += changes[kind][op];
    if (bytes > peak.bytes) peak = { op, bytes, held: held.slice() };
  }
  const kind = peak.held.indexOf(Math.max(...peak.held));
  const share = peak.bytes > 0 ? peak.held[kind] / peak.bytes : 0;
  return { op: peak.op, bytes: Math.max(0, peak.bytes), kind, share };
}
