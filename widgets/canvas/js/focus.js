// What is selected or pointed at, spelled out: which storages, ops and modules stand out in every panel.

// `what`: `{type: 'storage' | 'op' | 'module', id}`, or `{type: 'group', id, label, storages}` for several storages.
export function focusOf(what, scene) {
  if (!what || !scene) return null;
  const spelled = SPELLED[what.type]?.(what, scene);
  return spelled ? { ...what, ...spelled } : null;
}

const SPELLED = {
  storage({ id }, scene) {
    if (!(id < scene.storages)) return null;
    return {
      label: scene.storageName(id), storages: new Set([id]), ops: new Set(scene.uses(id)),
      modules: new Set([scene.storage_module[id]]),
    };
  },
  op({ id }, scene) {
    if (!(id < scene.ops)) return null;
    return {
      label: scene.opName(id), storages: new Set(scene.touches(id)), ops: new Set([id]),
      modules: new Set([scene.op_module[id]]),
    };
  },
  module({ id }, scene) {
    if (!(id < scene.modules)) return null;
    return {
      label: scene.path(id), storages: new Set(scene.moduleStorages(id)), ops: new Set(scene.moduleOps(id)),
      modules: new Set([id]),
    };
  },
  group({ label, storages }, scene) {
    const ops = new Set();
    const modules = new Set();
    for (const storage of storages) {
      for (const op of scene.uses(storage)) ops.add(op);
      modules.add(scene.storage_module[storage]);
    }
    return { label, storages: new Set(storages), ops, modules };
  },
};
