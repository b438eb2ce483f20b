// What holds the memory at one moment: storages put together by the part of the model that owns them and by what they
// are for. Every byte that is present is in exactly one group.
import { KINDS } from './kinds.js';
import { byChildren, divided, wholeOf } from './holder_parts.js';

const MOST = 0.25; // of the peak that one part may hold, if it can be divided
const MOST_PARTS = 24; // so many parts are not divided further

// The parts `{name, kind, storages}` of the model that tell most of a moment: the largest is divided as long as it
// holds too much of it. `present`: bytes of each storage at that moment.
export function partsOf(scene, present) {
  const kinds = KINDS.map((_, kind) => wholeOf(scene, present, kind)).filter(whole => whole.storages.length);
  const total = kinds.reduce((sum, whole) => sum + whole.bytes, 0);
  let parts = kinds.flatMap(whole => byChildren(scene, present, whole));
  while (parts.filter(part => part.bytes).length < MOST_PARTS) {
    const large = parts.filter(part => part.bytes > MOST * total && !part.whole);
    if (!large.length) break;
    const largest = large.reduce((best, part) => (part.bytes > best.bytes ? part : best));
    const smaller = divided(scene, present, largest);
    if (smaller) parts = parts.flatMap(part => (part === largest ? smaller : [part]));
    else largest.whole = true;
  }
  return parts;
}

// Groups `{id, name, kind, bytes, storages}` of the stays at some time, the largest first.
export function holdersOf(scene, plan, stays, parts) {
  const part = new Int32Array(scene.storages);
  parts.forEach(({ storages }, k) => {
    for (const storage of storages) part[storage] = k;
  });
  const groups = new Map();
  const seen = new Set();
  for (const stay of stays) {
    const storage = plan.stay_storage[stay];
    if (seen.has(storage) || !scene.bytesOf(storage)) continue;
    seen.add(storage);
    const k = part[storage];
    const { name, kind } = parts[k];
    if (!groups.has(k)) groups.set(k, { id: `${kind} ${name}`, name, kind, bytes: 0, storages: [], order: k });
    const group = groups.get(k);
    group.bytes += scene.bytesOf(storage);
    group.storages.push(storage);
  }
  for (const group of groups.values()) {
    if (group.storages.length === 1) group.name = scene.storageName(group.storages[0]);
  }
  return [...groups.values()].sort((a, b) => b.bytes - a.bytes || a.order - b.order);
}
