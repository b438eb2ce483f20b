// What every part of the model holds at the peak, how long it computes, and how many ops it has.
import { KINDS } from './kinds.js';
import { unswappedPeak } from './unswapped_peak.js';

export class Measure {
  // Without a plan nothing is swapped, and nothing takes time.
  constructor(scene, plan) {
    Object.assign(this, { scene, plan, parts: new WeakMap() });
    this.present = presentBytes(scene, plan);
    this.made = new Float64Array(scene.ops);
    this.most = 0;
    this.longest = 0;
    const count = scene.modules;
    this.kinds = KINDS.map(() => new Float64Array(count));
    this.seconds = new Float64Array(count);
    this.ops = new Float64Array(count);
    for (let storage = 0; storage < scene.storages; storage++) {
      this.kinds[scene.kindOf(storage)][scene.storage_module[storage]] += this.present[storage];
    }
    for (let op = 0; op < scene.ops; op++) {
      this.ops[scene.op_module[op]] += 1;
      const seconds = this.secondsOf(op);
      this.seconds[scene.op_module[op]] += seconds;
      if (seconds > this.longest) this.longest = seconds;
      for (const storage of scene.writes(op)) this.made[op] += scene.bytesOf(storage);
      if (this.made[op] > this.most) this.most = this.made[op];
    }
    for (const sums of [...this.kinds, this.seconds, this.ops]) {
      for (let module = count - 1; module > 0; module--) sums[scene.parentOf(module)] += sums[module];
    }
    this.total = this.ofModules([0]);
  }

  secondsOf(op) {
    return this.plan?.slots ? this.plan.secondsOf(op) : 0;
  }

  // Of one part as `runsOf` has them: bytes by kind, all bytes, seconds and ops.
  of(part) {
    let found = this.parts.get(part);
    if (!found) this.parts.set(part, (found = part.ops ? this.ofLists(part) : this.ofModules(part.modules)));
    return found;
  }

  ofModules(modules) {
    const sum = values => modules.reduce((total, module) => total + values[module], 0);
    return measured(this.kinds.map(sum), sum(this.seconds), sum(this.ops));
  }

  ofLists({ ops, storages }) {
    const kinds = KINDS.map(() => 0);
    for (const storage of storages) kinds[this.scene.kindOf(storage)] += this.present[storage];
    return measured(
      kinds,
      ops.reduce((total, op) => total + this.secondsOf(op), 0),
      ops.length,
    );
  }
}

const measured = (kinds, seconds, ops) => ({ kinds, seconds, ops, bytes: kinds.reduce((a, b) => a + b, 0) });

function presentBytes(scene, plan) {
  if (!plan) return unswappedPeak(scene).present;
  const present = new Float64Array(scene.storages);
  for (const stay of plan.present(plan.peak.seconds)) {
    const storage = plan.stay_storage[stay];
    present[storage] = scene.bytesOf(storage);
  }
  return present;
}
