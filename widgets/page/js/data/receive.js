// Apply messages from Python to the store, and send requests back; reports a kernel that does not answer.
import { features, keep } from '../core/features.js';
import { budgetAnswered } from './budget_request.js';
import { unpack } from './columns.js';
import { addressed, askedOfDrawn } from './drawn_step.js';
import { Plan } from './plan.js';
import { GraphData } from './graph_data.js';

const PATIENCE = 4000; // milliseconds until a kernel that does not answer is reported as absent

const RECEIVED = {
  graph: (store, message) => {
    const graph = new GraphData(message);
    store.set({ graph, plan: null, selection: null, hover: null, loading: null, refused: null });
  },
  plan: (store, message) => {
    // a newly opened page may receive a plan before the graph; it gets the plan again after the graph
    if (store.graph) store.set({ plan: new Plan(message, store.graph) });
  },
  budget: (store, message) => store.set(budgetAnswered(store, message)),
  notice: keep('notice'),
  busy: keep('notice'),
  exported: (store, message, buffers) => save(message, buffers[0]),
};
for (const kind of ['loading', 'refused', 'machine', 'samples']) RECEIVED[kind] = keep(kind);

// What receives a kind of message: this file, or the feature that it is for.
const receiverOf = kind => RECEIVED[kind] ?? features().find(({ receivers }) => receivers?.[kind])?.receivers[kind];

// Process a message as Python sent it.
export function receive(store, content, buffers = []) {
  if (store.offline === true) store.set({ offline: false });
  const [kind, to] = addressed(store, content.kind);
  receiverOf(kind)?.(to, kind === 'exported' ? content : unpack(content, buffers), buffers);
}

// A function that sends requests by `send(content)`; `heard(number)` must be called when Python confirms one.
export function asking(store, send) {
  const waiting = new Map();
  let number = 0;
  const ask = request => {
    number += 1;
    waiting.set(
      number,
      setTimeout(() => store.set({ offline: true }), PATIENCE),
    );
    try {
      send({ ...askedOfDrawn(store, request), number });
    } catch {
      store.set({ offline: true });
    }
  };
  const heard = which => {
    clearTimeout(waiting.get(which));
    waiting.delete(which);
    if (store.offline === true) store.set({ offline: false });
  };
  const close = () => {
    for (const timer of waiting.values()) clearTimeout(timer);
  };
  return { ask, heard, close };
}

// Save a file through the browser.
export function save({ filename, mime }, data) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([data], { type: mime }));
  link.download = filename;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
