// What is selected or pointed at, spelled out: which storages, ops and modules stand out in every panel.

// `what`: `{type: 'storage' | 'op' | 'module', id}`, or `{type: 'group', id, label, storages}` for several storages; a
// group that stands for a part of the model says its `ops` and `modules`, others have those that use their storages.
export function focusOf(what, scene) {
  if (!what || !scene) return null;
  if (!spelled.has(scene)) spelled.set(scene, new WeakMap());
  const known = spelled.get(scene);
  if (!known.has(what)) {
    const found = SPELLED[what.type]?.(what, scene);
    known.set(what, found ? { ...what, ...found } : null);
  }
  return known.get(what);
}

// Pointing at the same thing again spells it once.
const spelled = new WeakMap();

const SPELLED = {
  storage({ id }, scene) {
    if (!(id < scene.storages)) return null;
    return {
      label: scene.storageName(id),
      storages: new Set([id]),
      ops: new Set(scene.uses(id)),
      modules: new Set([scene.storage_module[id]]),
    };
  },
  op({ id }, scene) {
    if (!(id < scene.ops)) return null;
    return {
      label: scene.opName(id),
      storages: new Set(scene.touches(id)),
      ops: new Set([id]),
      modules: new Set([scene.op_module[id]]),
    };
  },
  module({ id }, scene) {
    if (!(id < scene.modules)) return null;
    return {
      label: scene.path(id),
      storages: new Set(scene.moduleStorages(id)),
      ops: new Set(scene.moduleOps(id)),
      modules: new Set([id]),
    };
  },
  group({ label, storages, ops, modules }, scene) {
    const users = new Set(ops);
    const owners = new Set(modules);
    for (const storage of storages) {
      if (!ops) for (const op of scene.uses(storage)) users.add(op);
      if (!modules) owners.add(scene.storage_module[storage]);
    }
    return { label, storages: new Set(storages), ops: users, modules: owners };
  },
};
