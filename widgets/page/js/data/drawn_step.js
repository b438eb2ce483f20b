// What the panels draw: the whole step, or one worker's graph with a plan of its own. What Python says about the one
// that is not drawn is kept aside, so that going back is at once.
export const WHOLE = 'step';
export const WORKER = 'worker';

// What there is of each.
const OWN = [
  'graph',
  'plan',
  'machine',
  'samples',
  'budget',
  'budget_bytes',
  'asked_bytes',
  'search',
  'front',
  'compare',
];
// What a worker is asked in place of the whole step while it is drawn.
const ASKED = new Set(['budget', 'take', 'search', 'resume', 'cancel', 'compare', 'machine', 'export']);
const PREFIX = 'worker_';

// Takes what is said like a store, and draws nothing.
class Aside {
  set(values) {
    Object.assign(this, values);
  }
}

// The kind of a message without what says that it is about a worker, and what it is for: the store, or what is kept.
export function addressed(store, kind) {
  const of = kind.startsWith(PREFIX) ? WORKER : WHOLE;
  const plain = of === WORKER ? kind.slice(PREFIX.length) : kind;
  if (of === store.drawn || (of === WHOLE && !OWN.includes(plain))) return [plain, store];
  store.aside ??= new Aside();
  return [plain, store.aside];
}

export const askedOfDrawn = ({ drawn }, request) =>
  drawn === WORKER && ASKED.has(request.do) ? { do: 'in_worker', request } : request;

// Draw the whole step or the worker; what is selected stays selected if the other has it, too.
export function draw(store, which) {
  if (store.drawn === which || !store.aside?.graph) return;
  clearTimeout(store.budget_timer);
  const { aside, graph, selection } = store;
  const before = Object.fromEntries(OWN.map(key => [key, store[key]]));
  const after = Object.fromEntries(OWN.map(key => [key, aside[key] ?? null]));
  store.aside = new Aside();
  store.aside.set(before);
  const toWorker = which === WORKER;
  const kept = carried(selection, graph, after.graph, storage => (toWorker ? part : whole)(store, storage));
  store.set({ ...after, drawn: which, selection: kept, hover: null, cursor: null });
}

// The worker's part of a storage of the whole step, and the reverse; -1 if there is none or it is not known.
const part = ({ shownWorker }, storage) => shownWorker?.storages[storage] ?? -1;
const whole = ({ shownWorker }, storage) => (shownWorker ? shownWorker.storages.indexOf(storage) : -1);

// Storages of the whole step in the graph that is drawn, as far as it has them.
export function drawnStorages(store, storages) {
  if (store.drawn !== WORKER) return storages;
  return storages.map(storage => part(store, storage)).filter(storage => storage >= 0);
}

// The storage of the whole step that one of the graph that is drawn is, or is a part of; -1 if that is not known.
export const storageOfWhole = (store, storage) => (store.drawn === WORKER ? whole(store, storage) : storage);

function carried(selection, from, to, other) {
  const { type, id } = selection ?? {};
  if (type === 'storage') return other(id) < 0 ? null : { type, id: other(id) };
  if (type === 'module') {
    const same = to.module_paths.indexOf(from.module_paths[id]);
    return same < 0 ? null : { type, id: same };
  }
  if (type !== 'group' || selection.ops) return null;
  const storages = [...selection.storages].map(other).filter(storage => storage >= 0);
  return storages.length ? { ...selection, storages } : null;
}

// `worker 2 (of 0 to 3)`: workers are numbered from 0, everywhere
export const workerName = ({ worker, workers }) => `worker ${worker} (of 0 to ${workers - 1})`;
