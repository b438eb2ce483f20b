// The lanes of a step, compute, copies out and copies in, and the collectives of a worker, as spans in positions of the
// time axis. Spans of a lane never overlap, so the one at a position is found by binary search.
import { countUpTo } from '../../core/sort_times.js';

export const LANES = [
  { name: 'compute', below: '', height: 36 },
  { name: 'swap out', below: 'D2H', height: 26 },
  { name: 'swap in', below: 'H2D', height: 26 },
  { name: 'collective', below: '', height: 26 },
];
export const COMPUTE = 0;
export const OUT = 1;
export const IN = 2;
export const COLLECTIVE = 3;
// Whether the spans of a lane are ops, and not copies of storages.
export const hasOps = which => which === COMPUTE || which === COLLECTIVE;

// `id`: the op or storage of each span; `shade`: index into the lane's colours; `slot`: of each span, if they are ops.
function lane(axis, start, stop, id, shade, slot = null) {
  const places = column => Float64Array.from(column, seconds => axis.place(seconds));
  return { count: start.length, from: places(start), to: places(stop), start, stop, id, shade, slot };
}

export class Lanes {
  constructor(plan, axis) {
    const { graphData } = plan;
    const collectives = new Set(plan.collective_op);
    const isCollective = slot => collectives.has(plan.order[slot]);
    const computed = [...plan.order.keys()].filter(slot => !isCollective(slot));
    const phases = ops => Uint8Array.from(ops, op => graphData.op_phase[op]);
    const ops = computed.map(slot => plan.order[slot]);
    const kinds = storages => Uint8Array.from(storages, storage => graphData.storage_kind[storage]);
    this.list = [
      lane(
        axis,
        Float32Array.from(computed, slot => plan.op_start[slot]),
        Float32Array.from(computed, slot => plan.op_stop[slot]),
        ops,
        phases(ops),
        computed,
      ),
      lane(axis, plan.out_start, plan.out_stop, plan.out_storage, kinds(plan.out_storage)),
      lane(axis, plan.in_start, plan.in_stop, plan.in_storage, kinds(plan.in_storage)),
      lane(
        axis,
        plan.collective_start,
        plan.collective_stop,
        plan.collective_op,
        phases(plan.collective_op),
        [...plan.order.keys()].filter(isCollective),
      ),
    ];
    // from top to bottom; without collectives, there is no lane for them
    this.shown = collectives.size ? [COMPUTE, COLLECTIVE, OUT, IN] : [COMPUTE, OUT, IN];
    const again = computed.filter(slot => plan.isRepeat(slot));
    const times = column => Float32Array.from(again, slot => column[slot]);
    this.repeats = lane(axis, times(plan.op_start), times(plan.op_stop), null, null);
    this.stalls = lane(axis, plan.stall_start, plan.stall_stop, plan.stall_op, null);
    this.seconds = plan.step_seconds;
  }

  // The share of the step in which a lane is busy.
  busy(which) {
    const { start, stop, count } = this.list[which];
    let sum = 0;
    for (let i = 0; i < count; i++) sum += stop[i] - start[i];
    return this.seconds > 0 ? sum / this.seconds : 0;
  }
}

// Indices `[first, end)` of the spans that intersect the range between two positions.
export function inView(spans, from, to) {
  let first = countUpTo(spans.from, from);
  while (first > 0 && spans.to[first - 1] >= from) first--;
  return [first, countUpTo(spans.from, to)];
}

// The span at a position, or the longest less than `slack` away; -1 if there is none.
export function spanAt(spans, place, slack) {
  const [first, end] = inView(spans, place - slack, place + slack);
  let best = -1;
  let worth = -1;
  for (let i = first; i < end; i++) {
    const inside = spans.from[i] <= place && spans.to[i] >= place;
    const length = spans.to[i] - spans.from[i] + (inside ? 1e9 : 0);
    if (length > worth) {
      worth = length;
      best = i;
    }
  }
  return best;
}
