// How a part of the model is divided for the list of what holds memory: a module into its children, layers that are
// alike into what lies in the same place in each of them, a module's own tensors by what computes them.
import { KINDS } from './kinds.js';

const MOST_CHILDREN = 8; // of more, neighbours are put together
const MOST_TENSORS = 4; // groups that tensors of one name are divided into
const HALF = 0.5; // of what layers that are alike hold: one that holds more is a part of its own

// A part is `{name, kind, modules, by, storages, bytes}`: `modules` are one, or several that are alike; `by` is how it
// can be divided: by `children`, by `name` of its tensors, by `tensor`, or into the `parts` it was put together from.

// Everything of one kind.
export function wholeOf(scene, present, kind) {
  const storages = [];
  for (let storage = 0; storage < scene.storages; storage++) if (scene.kindOf(storage) === kind) storages.push(storage);
  return part(present, { name: '', kind, modules: [0], by: 'children' }, storages);
}

// The parts that a part consists of; null where it is one.
export function divided(scene, present, whole) {
  let found = WAYS[whole.by](scene, present, whole);
  // a wrapper around one part says nothing
  while (found.length === 1 && found[0].by !== 'none') found = WAYS[found[0].by](scene, present, found[0]);
  return found.length > 1 ? found : null;
}

// What the children of its modules hold, and what the modules do themselves.
export function byChildren(scene, present, whole) {
  return gathered(scene, present, folded(scene, present, byChild(scene, present, whole)));
}

const WAYS = {
  children: byChildren,
  name: byName,
  tensor: byTensor,
  parts: (scene, present, { parts }) => parts,
  none: (scene, present, whole) => [whole],
};

const sum = (present, storages) => storages.reduce((bytes, storage) => bytes + present[storage], 0);
const part = (present, about, storages) => ({ ...about, storages, bytes: sum(present, storages) });

// One part for each child of the modules, and one for what belongs to the modules themselves.
function byChild(scene, present, { name, kind, modules, storages }) {
  const inside = new Set(modules);
  const places = new Map();
  for (const storage of storages) {
    let [child, above] = [-1, scene.storage_module[storage]];
    while (!inside.has(above)) [child, above] = [above, scene.parentOf(above)];
    const place = child < 0 ? -1 : scene.children(above).indexOf(child);
    if (!places.has(place)) places.set(place, []);
    places.get(place).push(storage);
  }
  return [...places]
    .sort(([a], [b]) => a - b)
    .map(([place, list]) => {
      if (place < 0) return part(present, { name: name || ownName(kind), kind, modules, by: 'name' }, list);
      const children = modules.map(module => scene.children(module)[place]).filter(child => child !== undefined);
      const label = scene.module_labels[children[0]];
      const path = modules.length > 1 ? `${name}.${label}` : scene.path(children[0]);
      return part(present, { name: path, kind, modules: children, by: 'children' }, list);
    });
}

const ownName = kind => (KINDS[kind] === 'input' ? 'batch' : 'top level');

// Neighbours that are alike as one part, unless one of them holds most of what they all do.
function folded(scene, present, parts) {
  const runs = [];
  for (const each of parts) {
    const alike = isOne(each) ? scene.module_alike[each.modules[0]] : -1;
    const last = runs.at(-1);
    if (alike >= 0 && last?.alike === alike) last.list.push(each);
    else runs.push({ alike, list: [each] });
  }
  return runs.flatMap(({ list }) => {
    const bytes = list.reduce((total, each) => total + each.bytes, 0);
    if (list.length < 2 || list.some(each => each.bytes > HALF * bytes)) return list;
    return [joined(scene, present, list, 'children')];
  });
}

const isOne = ({ modules, by }) => by === 'children' && modules.length === 1;

// Of many parts, the two neighbours that hold least are put together until they are few.
function gathered(scene, present, parts) {
  const found = [...parts];
  while (found.length > MOST_CHILDREN) {
    let least = -1;
    for (let k = 0; k + 1 < found.length; k++) {
      const pair = [found[k], found[k + 1]];
      if (pair.some(({ by }) => by === 'name')) continue;
      const bytes = at => found[at].bytes + found[at + 1].bytes;
      if (least < 0 || bytes(k) < bytes(least)) least = k;
    }
    if (least < 0) break;
    const pair = found.slice(least, least + 2).flatMap(each => each.parts ?? [each]);
    found.splice(least, 2, joined(scene, present, pair, 'parts'));
  }
  return found;
}

function joined(scene, present, parts, by) {
  const modules = parts.flatMap(each => each.modules);
  const name = `${scene.path(modules[0])} … ${scene.module_labels[modules.at(-1)]}`;
  const storages = parts.flatMap(each => each.storages);
  return part(present, { name, kind: parts[0].kind, modules, by, parts: by === 'parts' ? parts : null }, storages);
}

// A module's own tensors by their names in it, which say what computes them.
function byName(scene, present, { name, kind, modules, storages }) {
  const named = new Map();
  const top = modules[0] === 0;
  for (const storage of storages) {
    const path = top ? '' : scene.module_paths[scene.storage_module[storage]];
    const own = scene.storageName(storage);
    const tail = own.startsWith(path) ? own.slice(path.length) : `/${own}`;
    if (!named.has(tail)) named.set(tail, []);
    named.get(tail).push(storage);
  }
  const full = tail => (top ? tail : `${name}${tail}`);
  return [...named].map(([tail, list]) => part(present, { name: full(tail), kind, modules, by: 'tensor' }, list));
}

// Tensors of one name, in order, as a few groups that hold about the same; those that are not present go with the one
// before them.
function byTensor(scene, present, { kind, modules, storages }) {
  const total = sum(present, storages);
  const there = storages.filter(storage => present[storage]);
  const groups = [];
  let before = 0;
  for (const storage of storages) {
    const group = Math.floor((Math.min(MOST_TENSORS, there.length) * before) / (total || 1));
    if (!groups.length || (present[storage] && group > groups.at(-1).group)) groups.push({ group, list: [] });
    groups.at(-1).list.push(storage);
    before += present[storage];
  }
  return groups.map(({ list }) => {
    const names = list.filter(storage => present[storage] || list.length === 1).map(id => scene.storageName(id));
    const name = names.length > 1 ? `${names[0]} … ${names.at(-1)}` : (names[0] ?? scene.storageName(list[0]));
    return part(present, { name, kind, modules, by: 'none' }, list);
  });
}
