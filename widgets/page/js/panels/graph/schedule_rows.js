// The schedule as rows: one per forward op in the order of the plan, with its backward and update ops beside it. An op
// that runs again is where it runs first.
import { ACTIVATION } from '../../core/kinds.js';
import { grouped } from '../../data/graph_data.js';

const [FORWARD, BACKWARD] = [0, 1];

export class ScheduleRows {
  constructor(graphData, plan) {
    const order = plan?.slots
      ? plan.order.filter((_, slot) => !plan.isRepeat(slot))
      : Int32Array.from({ length: graphData.ops }, (_, op) => op);
    this.ops = order.filter(op => graphData.op_phase[op] === FORWARD);
    this.count = this.ops.length;
    this.rowOf = new Int32Array(graphData.ops).fill(-1);
    this.ops.forEach((op, row) => {
      this.rowOf[op] = row;
    });
    let last = 0;
    for (const op of order) {
      // an op without a forward op is placed beside the op before it
      if (graphData.op_phase[op] === FORWARD) continue;
      const twin = graphData.op_forward[op];
      last = twin >= 0 ? this.rowOf[twin] : last;
      this.rowOf[op] = this.count ? Math.max(0, last) : -1;
    }
    const side = phase =>
      grouped(this.count, order.length, k => {
        const op = order[k];
        const now = graphData.op_phase[op];
        const there = (phase === BACKWARD) === (now === BACKWARD) && now !== FORWARD;
        return there && this.rowOf[op] >= 0 ? [this.rowOf[op]] : [];
      });
    const backward = side(BACKWARD);
    const update = side();
    const opsIn = lists => row => lists.of(row).map(k => order[k]);
    this.backward = opsIn(backward);
    this.update = opsIn(update);
    this.kept = keptForBackward(graphData, plan, this);
    this.levels = stageLevels(graphData, this.ops);
  }
}

// Activations that a later backward op reads: from the row that makes one to the row of the op that reads it.
function keptForBackward(graphData, plan, { rowOf }) {
  const kept = [];
  for (let storage = 0; storage < graphData.storages; storage++) {
    if (graphData.kindOf(storage) !== ACTIVATION) continue;
    const uses = graphData.uses(storage);
    const reader = uses.find(op => graphData.op_phase[op] === BACKWARD);
    if (reader === undefined || graphData.op_phase[uses[0]] !== FORWARD) continue;
    const away = plan ? plan.residencies(storage).length > 1 : false;
    const recomputed = plan ? plan.recomputed(storage) > 0 : false;
    const [from, to] = [rowOf[uses[0]], rowOf[reader]];
    kept.push({ storage, from, to, bytes: graphData.bytesOf(storage), away, recomputed });
  }
  return kept;
}

// Per level below the root, the rows at which another module begins: `[{row, module}, ...]`; an op at a lesser depth
// keeps its module, and ops of the root itself have module 0.
function stageLevels(graphData, ops) {
  const paths = new Map();
  const pathOf = module => {
    if (!paths.has(module)) {
      const path = [];
      for (let m = module; m > 0; m = graphData.parentOf(m)) path.unshift(m);
      paths.set(module, path);
    }
    return paths.get(module);
  };
  let deepest = 0;
  for (const op of ops) deepest = Math.max(deepest, pathOf(graphData.op_module[op]).length);
  const levels = Array.from({ length: deepest }, () => []);
  ops.forEach((op, row) => {
    const path = pathOf(graphData.op_module[op]);
    levels.forEach((starts, depth) => {
      const module = path[Math.min(depth, path.length - 1)] ?? 0;
      if (starts.at(-1)?.module !== module) starts.push({ row, module });
    });
  });
  return levels;
}
