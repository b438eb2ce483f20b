// The parts of an opened module in execution order: its children and, between them, its own ops.
// Identical modules are opened together: parts at the same place in each of them form one part.
import { PARAMETER } from '../core/kinds.js';

const MOST_CALLS = 4; // a module without parameters is one part per call, up to this many calls
const INPUT = 2;
const FORWARD = 0;

// Runs of parts: the parts of one run are identical and may be folded. `modules`: one, or several identical ones.
export function runsOf(graphData, modules) {
  const places = modules.map(module => placesOf(graphData, module));
  const runs = [];
  places[0].forEach((place, k) => {
    const part = joined(graphData, place, places.map(each => each[k]).filter(Boolean));
    const before = runs.at(-1)?.[0];
    if (before && part.alike >= 0 && before.alike === part.alike) runs.at(-1).push(part);
    else runs.push([part]);
  });
  return modules[0] === 0 ? [...batch(graphData), ...runs] : runs;
}

// The parts of a run merged into one.
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

// The ops that a part represents, and the storages that belong to it.
export function opsOf(graphData, { ops, modules }) {
  return ops || modules.flatMap(module => [...graphData.moduleOps(module)]);
}
export function storagesOf(graphData, { storages, modules }) {
  return storages || modules.flatMap(module => [...graphData.moduleStorages(module)]);
}

// `aten.add_.Tensor` as `add`.
export function shortTarget(target) {
  const names = target.split('.');
  return (names[1] ?? target).replace(/^_+|_+$/g, '');
}

// The batch belongs to no module.
function batch(graphData) {
  const storages = [...graphData.ownStorages.of(0)].filter(storage => graphData.kindOf(storage) === INPUT);
  if (!storages.length) return [];
  const kind = storages.length === 1 ? 'Input' : `${storages.length} inputs`;
  const names = { key: 'batch', label: 'batch', path: 'batch', kind };
  return [[{ ...names, modules: [], count: 1, own: true, ops: [], storages, alike: -1 }]];
}

// Of one module: `{child, call, calls, ops, storages}` in order; child -1 for ops of its own. Ops and storages are null
// if they are all of the child's.
function placesOf(graphData, module) {
  const calls = callsOf(graphData, module);
  const places = [];
  for (const [child, ops] of calls.order) {
    const all = calls.of.get(child);
    const split = all.length > 1 && all.length <= MOST_CALLS && (child < 0 || isPlain(graphData, child));
    const end = child < 0 && ops === all.at(-1); // a module's last ops, such as a loss, are always a part
    if (!split && !end && ops !== all[0]) continue;
    const forward = split || end ? ops : child < 0 && all.length > 1 ? all.slice(0, -1).flat() : all.flat();
    places.push({ child, call: split ? all.indexOf(ops) : -1, forward, ops: null, storages: null });
  }
  for (const child of graphData.children(module)) {
    if (!calls.of.has(child)) places.push({ child, call: -1, forward: [], ops: null, storages: null });
  }
  divide(graphData, module, -1, places);
  for (const child of new Set(places.filter(place => place.call >= 0 && place.child >= 0).map(place => place.child))) {
    divide(graphData, child, child, places);
  }
  return places;
}

// Forward ops inside a module as lists of consecutive ops of the same child, in order and by child.
function callsOf(graphData, module) {
  const order = [];
  const of = new Map();
  for (const op of graphData.moduleOps(module)) {
    if (graphData.op_phase[op] !== FORWARD) continue;
    const child = graphData.childAbove(graphData.op_module[op], module);
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

// Distribute the own ops and storages of a module over its parts: an op of a later phase joins its forward op, a
// storage the first op that touches it, and the remainder the last part.
function divide(graphData, module, child, places) {
  let mine = places.filter(place => place.child === child);
  const ops = graphData.ownOps.of(module);
  const storages = [...graphData.ownStorages.of(module)]
    .filter(storage => module > 0 || graphData.kindOf(storage) !== INPUT);
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
    const place = at.get(op) || at.get(graphData.op_forward[op]) || mine.at(-1);
    at.set(op, place);
    place.ops.push(op);
  }
  for (const storage of storages) {
    const first = graphData.uses(storage).find(op => at.has(op));
    (first === undefined ? mine.at(-1) : at.get(first)).storages.push(storage);
  }
}

const isPlain = (graphData, module) =>
  !graphData.children(module).length
  && !graphData.ownStorages.of(module).some(storage => graphData.kindOf(storage) === PARAMETER);

// Merge the parts at the same place of several identical modules into one.
function joined(graphData, { child, call, ops }, places) {
  const own = child < 0;
  const lists = name => (ops ? places.flatMap(place => place[name] || []) : null);
  const modules = own ? [] : places.map(place => place.child);
  const part = { count: 1, own, modules, ops: lists('ops'), storages: lists('storages'), alike: -1, kind: '' };
  if (own) return { ...part, key: `o${ops[0] ?? 's' + part.storages[0]}`, ...ownName(graphData, part) };
  return {
    ...part,
    key: `m${child}${call > 0 ? '.' + call : ''}`,
    alike: call >= 0 ? -1 : graphData.module_alike[child],
    label: graphData.module_labels[child],
    path: graphData.path(child),
    kind: graphData.module_kinds[child],
  };
}

// Own ops of a module are named after what they compute; those at the end of the forward pass are named the loss.
function ownName(graphData, { ops }) {
  const forward = ops.filter(op => graphData.op_phase[op] === FORWARD);
  const names = [...new Set((forward.length ? forward : ops).map(op => shortTarget(graphData.targetOf(op))))];
  const list = names.slice(0, 3).join(', ') + (names.length > 3 ? ` +${names.length - 3}` : '');
  const where = graphData.op_module[ops[0]] > 0 ? graphData.path(graphData.op_module[ops[0]]) + ': ' : '';
  if (forward.includes(graphData.lossOp)) return { label: 'loss', path: 'loss', kind: list };
  return { label: list || 'storages', path: where + (list || 'storages without an op') };
}
