// Bytes at the peak, compute time and number of ops of every part of the model.
import { KINDS } from '../../core/kinds.js';
import { unswappedPeak } from '../../data/unswapped_peak.js';

export class Measure {
  // Without a plan nothing is swapped, and all times are zero.
  constructor(graphData, plan) {
    Object.assign(this, { graphData, plan, parts: new WeakMap() });
    this.present = presentBytes(graphData, plan);
    this.made = new Float64Array(graphData.ops);
    this.most = 0;
    this.longest = 0;
    const count = graphData.modules;
    this.kinds = KINDS.map(() => new Float64Array(count));
    this.seconds = new Float64Array(count);
    this.ops = new Float64Array(count);
    for (let storage = 0; storage < graphData.storages; storage++) {
      this.kinds[graphData.kindOf(storage)][graphData.storage_module[storage]] += this.present[storage];
    }
    for (let op = 0; op < graphData.ops; op++) {
      this.ops[graphData.op_module[op]] += 1;
      const seconds = this.secondsOf(op);
      this.seconds[graphData.op_module[op]] += seconds;
      if (seconds > this.longest) this.longest = seconds;
      for (const storage of graphData.writes(op)) this.made[op] += graphData.bytesOf(storage);
      if (this.made[op] > this.most) this.most = this.made[op];
    }
    for (const sums of [...this.kinds, this.seconds, this.ops]) {
      for (let module = count - 1; module > 0; module--) sums[graphData.parentOf(module)] += sums[module];
    }
    this.total = this.ofModules([0]);
  }

  secondsOf(op) {
    return this.plan?.slots ? this.plan.secondsOf(op) : 0;
  }

  // The measure of one part from `runsOf`: bytes by kind, all bytes, seconds and ops.
  of(part) {
    let found = this.parts.get(part);
    if (!found) this.parts.set(part, (found = part.ops ? this.ofLists(part) : this.ofModules(part.modules)));
    return found;
  }

  storagesOf({ modules, ops, storages }) {
    return ops ? storages : modules.flatMap(module => [...this.graphData.moduleStorages(module)]);
  }

  ofModules(modules) {
    const sum = values => modules.reduce((total, module) => total + values[module], 0);
    return measured(this.kinds.map(sum), sum(this.seconds), sum(this.ops));
  }

  ofLists({ ops, storages }) {
    const kinds = KINDS.map(() => 0);
    for (const storage of storages) kinds[this.graphData.kindOf(storage)] += this.present[storage];
    return measured(
      kinds,
      ops.reduce((total, op) => total + this.secondsOf(op), 0),
      ops.length,
    );
  }
}

const measured = (kinds, seconds, ops) => ({ kinds, seconds, ops, bytes: kinds.reduce((a, b) => a + b, 0) });

function presentBytes(graphData, plan) {
  if (!plan) return unswappedPeak(graphData);
  const present = new Float64Array(graphData.storages);
  for (const residency of plan.present(plan.peak.seconds)) {
    const storage = plan.residency_storage[residency];
    present[storage] = graphData.bytesOf(storage);
  }
  return present;
}
