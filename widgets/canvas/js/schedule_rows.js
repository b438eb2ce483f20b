// The schedule as rows: one per forward op in the order of the plan; backward and update ops lie beside theirs.
import { ACTIVATION } from './kinds.js';
import { grouped } from './scene.js';

const [FORWARD, BACKWARD] = [0, 1];

export class ScheduleRows {
  constructor(scene, plan) {
    const order = plan?.slots ? plan.order : Int32Array.from({ length: scene.ops }, (_, op) => op);
    this.ops = order.filter(op => scene.op_phase[op] === FORWARD);
    this.count = this.ops.length;
    this.rowOf = new Int32Array(scene.ops).fill(-1);
    this.ops.forEach((op, row) => {
      this.rowOf[op] = row;
    });
    let last = 0;
    for (const op of order) {
      // an op that belongs to none lies beside the one before it
      if (scene.op_phase[op] === FORWARD) continue;
      const twin = scene.op_twin[op];
      last = twin >= 0 ? this.rowOf[twin] : last;
      this.rowOf[op] = this.count ? Math.max(0, last) : -1;
    }
    const side = phase =>
      grouped(this.count, order.length, k => {
        const op = order[k];
        const there = (phase === BACKWARD) === (scene.op_phase[op] === BACKWARD) && scene.op_phase[op] !== FORWARD;
        return there && this.rowOf[op] >= 0 ? [this.rowOf[op]] : [];
      });
    const backward = side(BACKWARD);
    const update = side();
    const opsIn = lists => row => lists.of(row).map(k => order[k]);
    this.backward = opsIn(backward);
    this.update = opsIn(update);
    this.kept = keptForBackward(scene, plan, this);
    this.levels = stageLevels(scene, this.ops);
  }
}

// Activations that a later backward op reads: from the row that makes them to the row beside which they are read.
function keptForBackward(scene, plan, { rowOf }) {
  const kept = [];
  for (let storage = 0; storage < scene.storages; storage++) {
    if (scene.kindOf(storage) !== ACTIVATION) continue;
    const uses = scene.uses(storage);
    const reader = uses.find(op => scene.op_phase[op] === BACKWARD);
    if (reader === undefined || scene.op_phase[uses[0]] !== FORWARD) continue;
    const away = plan ? plan.stays(storage).length > 1 : false;
    kept.push({ storage, from: rowOf[uses[0]], to: rowOf[reader], bytes: scene.bytesOf(storage), away });
  }
  return kept;
}

// Level by level below the root, the rows at which another module begins: `[{row, module}, ...]`; an op that lies less
// deep keeps its module, and those of the root itself have module 0.
function stageLevels(scene, ops) {
  const paths = new Map();
  const pathOf = module => {
    if (!paths.has(module)) {
      const path = [];
      for (let m = module; m > 0; m = scene.parentOf(m)) path.unshift(m);
      paths.set(module, path);
    }
    return paths.get(module);
  };
  let deepest = 0;
  for (const op of ops) deepest = Math.max(deepest, pathOf(scene.op_module[op]).length);
  const levels = Array.from({ length: deepest }, () => []);
  ops.forEach((op, row) => {
    const path = pathOf(scene.op_module[op]);
    levels.forEach((starts, depth) => {
      const module = path[Math.min(depth, path.length - 1)] ?? 0;
      if (starts.at(-1)?.module !== module) starts.push({ row, module });
    });
  });
  return levels;
}
