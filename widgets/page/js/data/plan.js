// A plan as it is drawn: times of the ops, the residencies, and the resulting bytes over time.
import { ascending, countUpTo } from '../core/sort_times.js';
import { KINDS, PHASES } from '../core/kinds.js';
import { grouped } from './graph_data.js';

export class Plan {
  // `message`: of kind `plan`, columns unpacked; `graphData`: the step it is for.
  constructor(message, graphData) {
    Object.assign(this, message);
    this.graphData = graphData;
    this.slots = this.order.length;
    this.slots_ = grouped(graphData.ops, this.slots, slot => [this.order[slot]]);
    this.repeats_ = new Set(this.repeat_slot);
    this.residencies_ = grouped(graphData.storages, this.residency_storage.length, k => [this.residency_storage[k]]);
    this.changes = byteChanges(this);
    this.curve = byteCurve(this, graphData);
    this.peak = this.findPeak();
  }

  // The slots in which an op runs, ascending, and the first of them.
  slotsOf(op) {
    return this.slots_.of(op);
  }
  slotOf(op) {
    return this.slotsOf(op)[0];
  }
  // Whether the op in a slot ran before in the same step.
  isRepeat(slot) {
    return this.repeats_.has(slot);
  }
  phaseAt(slot) {
    return PHASES[this.graphData.op_phase[this.order[slot]]] + (this.isRepeat(slot) ? ', run again' : '');
  }
  secondsAt(slot) {
    return this.op_stop[slot] - this.op_start[slot];
  }
  // Seconds of an op in all its runs.
  secondsOf(op) {
    return this.slotsOf(op).reduce((sum, slot) => sum + this.secondsAt(slot), 0);
  }
  // The slots that use a storage, ascending; an op that runs again may use less than when it runs first.
  usesOf(storage) {
    const unused = new Set(this.unused_slot.filter((_, k) => this.unused_storage[k] === storage));
    const slots = [...this.graphData.uses(storage)].flatMap(op => [...this.slotsOf(op)]);
    return slots.filter(slot => !unused.has(slot)).sort((a, b) => a - b);
  }
  // How many residencies of a storage begin with an op that runs again.
  recomputed(storage) {
    return this.residencies(storage).reduce((count, row) => count + this.residency_recomputed[row], 0);
  }
  // Positions in the residency columns, ascending in time.
  residencies(storage) {
    return this.residencies_.of(storage);
  }

  // The slot that runs at a time, or ran last before it.
  slotAt(seconds) {
    return Math.max(0, countUpTo(this.op_start, seconds) - 1);
  }
  opAt(seconds) {
    return this.order[this.slotAt(seconds)];
  }

  // Time that a storage spends off the device between its residencies.
  awaySeconds(storage) {
    const residencies = this.residencies(storage);
    let away = 0;
    for (let k = 1; k < residencies.length; k++) {
      away += Math.max(0, this.residency_start[residencies[k]] - this.residency_stop[residencies[k - 1]]);
    }
    return away;
  }

  findPeak() {
    const { times, total } = this.curve;
    let at = 0;
    for (let i = 1; i < total.length; i++) if (total[i] > total[at]) at = i;
    const seconds = times.length ? times[at] : 0;
    const slot = this.slots ? this.slotAt(seconds) : -1;
    return { at, bytes: times.length ? total[at] : 0, seconds, slot, op: this.slots ? this.order[slot] : -1 };
  }

  // Residencies at a time, as positions in the residency columns.
  present(seconds) {
    const found = [];
    for (let k = 0; k < this.residency_start.length; k++) {
      if (this.residency_start[k] <= seconds && this.residency_stop[k] > seconds) found.push(k);
    }
    return found;
  }

  // Residencies that are in a span of seconds and addresses for some time, as positions in the residency columns.
  residenciesIn({ from, to, low, high }) {
    const { residency_start: start, residency_stop: stop, residency_offset: offset, residency_storage: storage } = this;
    const { storage_bytes: bytes } = this.graphData;
    const found = new Int32Array(start.length);
    let count = 0;
    for (let k = 0; k < start.length; k++) {
      if (start[k] >= to || stop[k] <= from) continue;
      if (offset[k] < high && offset[k] + bytes[storage[k]] > low) found[count++] = k;
    }
    return found.subarray(0, count);
  }

  // Slots whose op runs in a span of seconds for some time.
  slotsIn({ from, to }) {
    const found = [];
    for (let slot = 0; slot < this.slots && this.op_start[slot] < to; slot++) {
      if (this.op_stop[slot] > from) found.push(slot);
    }
    return found;
  }

  // Bytes of each kind at a time.
  bytesAt(seconds) {
    const { times, byKind } = this.curve;
    const at = Math.max(0, countUpTo(times, seconds) - 1);
    return byKind.map((sums, kind) => (times.length ? sums[at] - (kind ? byKind[kind - 1][at] : 0) : 0));
  }
}

// When residencies begin and end: `marks[2 * k]` and `marks[2 * k + 1]` of residency k, and their ascending `order`.
function byteChanges({ residency_start: start, residency_stop: stop }) {
  const marks = new Float32Array(2 * start.length);
  for (let k = 0; k < start.length; k++) {
    marks[2 * k] = start[k];
    marks[2 * k + 1] = stop[k];
  }
  return { marks, order: ascending(marks) };
}

// Bytes on the device over time: `times` ascending, `byKind[k]` the sum of kinds 0 to k from then on, `total` of all.
function byteCurve(plan, graphData) {
  const count = plan.residency_start.length;
  const { marks, order } = plan.changes;
  const times = new Float64Array(2 * count);
  const sums = KINDS.map(() => new Float64Array(2 * count));
  const held = new Float64Array(KINDS.length);
  let at = 0;
  for (let i = 0; i < order.length; at++) {
    const time = marks[order[i]];
    for (; i < order.length && marks[order[i]] === time; i++) {
      const storage = plan.residency_storage[order[i] >> 1];
      held[graphData.storage_kind[storage]] += (order[i] & 1 ? -1 : 1) * graphData.storage_bytes[storage];
    }
    times[at] = time;
    let sum = 0;
    for (let kind = 0; kind < KINDS.length; kind++) {
      sum += held[kind];
      sums[kind][at] = sum;
    }
  }
  const byKind = sums.map(list => list.subarray(0, at));
  return { times: times.subarray(0, at), byKind, total: byKind[KINDS.length - 1] };
}
