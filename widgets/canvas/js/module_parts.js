// What an opened module is made of, in the order in which it runs: its children and, between them, ops of its own.
// Alike modules are opened together: what lies in the same place in each of them is one part.
import { PARAMETER } from './kinds.js';

const MOST_CALLS = 4; // a module without parameters is a part for each call, up to so many
const INPUT = 2;
const FORWARD = 0;

// Runs of parts: the parts of one run are alike and may be folded into one. `modules`: one, or several that are alike.
export function runsOf(scene, modules) {
  const places = modules.map(module => placesOf(scene, module));
  const runs = [];
  places[0].forEach((place, k) => {
    const part = joined(scene, place, places.map(each => each[k]).filter(Boolean));
    const before = runs.at(-1)?.[0];
    if (before && part.alike >= 0 && before.alike === part.alike) runs.at(-1).push(part);
    else runs.push([part]);
  });
  return modules[0] === 0 ? [...batch(scene), ...runs] : runs;
}

// The parts of a run as one.
export function folded(run) {
  const [first, last] = [run[0], run.at(-1)];
  return {
    ...first,
    key: 'f' + first.modules[0],
    modules: run.flatMap(part => part.modules),
    count: run.length,
    label: `${first.label} … ${last.label}`,
    path: `${first.path} … ${last.label}`,
  };
}

// The ops that a part stands for, and the storages that belong to it.
export function opsOf(scene, { ops, modules }) {
  return ops || modules.flatMap(module => [...scene.moduleOps(module)]);
}
export function storagesOf(scene, { storages, modules }) {
  return storages || modules.flatMap(module => [...scene.moduleStorages(module)]);
}

// `aten.add_.Tensor` as `add`.
export function shortTarget(target) {
  const names = target.split('.');
  return (names[1] ?? target).replace(/^_+|_+$/g, '');
}

// The batch belongs to no module that runs.
function batch(scene) {
  const storages = [...scene.ownStorages.of(0)].filter(storage => scene.kindOf(storage) === INPUT);
  if (!storages.length) return [];
  const kind = storages.length === 1 ? 'Input' : `${storages.length} inputs`;
  const names = { key: 'batch', label: 'batch', path: 'batch', kind };
  return [[{ ...names, modules: [], count: 1, own: true, ops: [], storages, alike: -1 }]];
}

// Of one module: `{child, call, calls, ops, storages}` in order; child -1 for ops of its own. Ops and storages are null
// where they are simply all of the child's.
function placesOf(scene, module) {
  const calls = callsOf(scene, module);
  const places = [];
  for (const [child, ops] of calls.order) {
    const all = calls.of.get(child);
    const split = all.length > 1 && all.length <= MOST_CALLS && (child < 0 || isPlain(scene, child));
    const end = child < 0 && ops === all.at(-1); // what a module computes last, such as a loss, is a part always
    if (!split && !end && ops !== all[0]) continue;
    const forward = split || end ? ops : child < 0 && all.length > 1 ? all.slice(0, -1).flat() : all.flat();
    places.push({ child, call: split ? all.indexOf(ops) : -1, forward, ops: null, storages: null });
  }
  for (const child of scene.children(module)) {
    if (!calls.of.has(child)) places.push({ child, call: -1, forward: [], ops: null, storages: null });
  }
  divide(scene, module, -1, places);
  for (const child of new Set(places.filter(place => place.call >= 0 && place.child >= 0).map(place => place.child))) {
    divide(scene, child, child, places);
  }
  return places;
}

// Forward ops below a module as lists of consecutive ones of the same child, in order and by child.
function callsOf(scene, module) {
  const order = [];
  const of = new Map();
  for (const op of scene.moduleOps(module)) {
    if (scene.op_phase[op] !== FORWARD) continue;
    const child = scene.childAbove(scene.op_module[op], module);
    if (order.at(-1)?.[0] === child) {
      order.at(-1)[1].push(op);
      continue;
    }
    const ops = [op];
    order.push([child, ops]);
    if (!of.has(child)) of.set(child, []);
    of.get(child).push(ops);
  }
  return { order, of };
}

// Give the ops of a module itself, and its storages, to the places among which they are divided: an op of a later phase
// goes with its forward op, a storage with the first op that touches it, and what is left with the last.
function divide(scene, module, child, places) {
  let mine = places.filter(place => place.child === child);
  const ops = scene.ownOps.of(module);
  const storages = [...scene.ownStorages.of(module)].filter(storage => module > 0 || scene.kindOf(storage) !== INPUT);
  if (!mine.length && (ops.length || storages.length)) {
    mine = [{ child, call: -1, forward: [], ops: null, storages: null }];
    places.push(mine[0]);
  }
  if (!mine.length) return;
  const at = new Map();
  for (const place of mine) {
    Object.assign(place, { ops: [], storages: [] });
    for (const op of place.forward) at.set(op, place);
  }
  for (const op of ops) {
    const place = at.get(op) || at.get(scene.op_twin[op]) || mine.at(-1);
    at.set(op, place);
    place.ops.push(op);
  }
  for (const storage of storages) {
    const first = scene.uses(storage).find(op => at.has(op));
    (first === undefined ? mine.at(-1) : at.get(first)).storages.push(storage);
  }
}

const isPlain = (scene, module) =>
  !scene.children(module).length && !scene.ownStorages.of(module).some(storage => scene.kindOf(storage) === PARAMETER);

// The same place of several alike modules as one part.
function joined(scene, { child, call, ops }, places) {
  const own = child < 0;
  const lists = name => (ops ? places.flatMap(place => place[name] || []) : null);
  const modules = own ? [] : places.map(place => place.child);
  const part = { count: 1, own, modules, ops: lists('ops'), storages: lists('storages'), alike: -1, kind: '' };
  if (own) return { ...part, key: `o${ops[0] ?? 's' + part.storages[0]}`, ...ownName(scene, part) };
  return {
    ...part,
    key: `m${child}${call > 0 ? '.' + call : ''}`,
    alike: call >= 0 ? -1 : scene.module_alike[child],
    label: scene.module_labels[child],
    path: scene.path(child),
    kind: scene.module_kinds[child],
  };
}

// Ops of a module itself are called what they compute; those at the end of the forward pass are the loss.
function ownName(scene, { ops }) {
  const forward = ops.filter(op => scene.op_phase[op] === FORWARD);
  const names = [...new Set((forward.length ? forward : ops).map(op => shortTarget(scene.targetOf(op))))];
  const list = names.slice(0, 3).join(', ') + (names.length > 3 ? ` +${names.length - 3}` : '');
  const where = scene.op_module[ops[0]] > 0 ? scene.path(scene.op_module[ops[0]]) + ': ' : '';
  if (forward.includes(scene.lossOp)) return { label: 'loss', path: 'loss', kind: list };
  return { label: list || 'storages', path: where + (list || 'storages without an op') };
}
