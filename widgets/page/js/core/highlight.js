// Resolve the selection or hover to the storages, ops and modules that are highlighted in every panel.
import { boundsOf, spanText } from './span.js';

// `what`: `{type: 'storage' | 'op' | 'module', id}`, or `{type: 'group', id, label, storages}` for several storages; a
// group for a part of the model has its own `ops` and `modules`, others get those that use their storages. What is in
// `{type: 'span', time, addresses}` depends on the plan.
export function focusOf(what, graphData, plan = null) {
  const of = what?.type === 'span' ? plan : graphData;
  if (!what || !graphData || !of) return null;
  if (!spelled.has(of)) spelled.set(of, new WeakMap());
  const known = spelled.get(of);
  if (!known.has(what)) {
    const found = SPELLED[what.type]?.(what, graphData, plan);
    known.set(what, found ? { ...what, ...found } : null);
  }
  return known.get(what);
}

// Cached, so that hovering the same thing again resolves it once.
const spelled = new WeakMap();

const SPELLED = {
  storage({ id }, graphData) {
    if (!(id < graphData.storages)) return null;
    return {
      label: graphData.storageName(id),
      storages: new Set([id]),
      ops: new Set(graphData.uses(id)),
      modules: new Set([graphData.storage_module[id]]),
    };
  },
  op({ id }, graphData) {
    if (!(id < graphData.ops)) return null;
    return {
      label: graphData.opName(id),
      storages: new Set(graphData.touches(id)),
      ops: new Set([id]),
      modules: new Set([graphData.op_module[id]]),
    };
  },
  module({ id }, graphData) {
    if (!(id < graphData.modules)) return null;
    return {
      label: graphData.path(id),
      storages: new Set(graphData.moduleStorages(id)),
      ops: new Set(graphData.moduleOps(id)),
      modules: new Set([id]),
    };
  },
  group({ label, storages, ops, modules }, graphData) {
    const users = new Set(ops);
    const owners = new Set(modules);
    for (const storage of storages) {
      if (!ops) for (const op of graphData.uses(storage)) users.add(op);
      if (!modules) owners.add(graphData.storage_module[storage]);
    }
    return { label, storages: new Set(storages), ops: users, modules: owners };
  },
  // The ops are those that run in it and, if it is a part of the addresses, use what is there.
  span(span, graphData, plan) {
    const bounds = boundsOf(span, plan);
    const storages = new Set();
    for (const row of plan.residenciesIn(bounds)) storages.add(plan.residency_storage[row]);
    const uses = op => !span.addresses || graphData.touches(op).some(storage => storages.has(storage));
    const ops = new Set(Array.from(plan.slotsIn(bounds), slot => plan.order[slot]).filter(uses));
    const modules = new Set(Array.from(ops, op => graphData.op_module[op]));
    return { label: spanText(span, plan), storages, ops, modules };
  },
};
