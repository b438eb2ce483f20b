// Tooltips of the streams, in exact numbers.
import { KIND_LABELS, kindVariable } from '../../core/kinds.js';
import { opFacts, storageFacts } from '../../data/neighbours.js';
import { showTip } from '../../plots/tooltip.js';
import { exactBytes, countText, secondsText } from '../../core/units.js';

const span = (start, stop) => `${secondsText(start, 3)} to ${secondsText(stop, 3)}`;

// A run of an op, by its slot.
export function opTip(event, host, plan, slot) {
  const { graphData } = plan;
  const op = plan.order[slot];
  const again = plan.isRepeat(slot);
  const others = again ? [plan.slotOf(op)] : [...plan.slotsOf(op)].slice(1);
  showTip(event, host, graphData.opName(op), [
    ['op', graphData.targetOf(op)],
    ...opFacts(graphData, op),
    ['phase', `${plan.phaseAt(slot)}, op ${countText(slot + 1)} of ${countText(plan.slots)}`],
    ['runs', span(plan.op_start[slot], plan.op_stop[slot])],
    ['takes', secondsText(plan.secondsAt(slot), 3)],
    ...(others.length ? [[again ? 'runs first' : 'runs again', runsAt(plan, others)]] : []),
    ['working set', exactBytes(graphData.op_working_set[op])],
  ]);
}

const runsAt = (plan, slots) => slots.map(slot => `at ${secondsText(plan.op_start[slot], 3)}`).join(', ');

// A copy by its position in the plan's columns of copies out or in.
export function copyTip(event, host, plan, out, at) {
  const { graphData } = plan;
  const storage = (out ? plan.out_storage : plan.in_storage)[at];
  const start = (out ? plan.out_start : plan.in_start)[at];
  const stop = (out ? plan.out_stop : plan.in_stop)[at];
  const kind = graphData.kindOf(storage);
  const rows = [
    ['kind', KIND_LABELS[kind], kindVariable(kind)],
    ...storageFacts(graphData, storage),
    ['size', exactBytes(graphData.bytesOf(storage))],
    [out ? 'leaves' : 'arrives', span(start, stop)],
  ];
  if (stop > start) rows.push(['rate', `${(graphData.bytesOf(storage) / (stop - start) / 1e9).toFixed(1)} GB/s`]);
  if (out) rows.push(['last use', useOr(plan, lastUse(plan, storage, start))]);
  else rows.push(['next use', useOr(plan, nextUse(plan, storage, stop))]);
  showTip(event, host, graphData.storageName(storage), rows);
}

export function stallTip(event, host, plan, at) {
  const { graphData } = plan;
  const op = plan.stall_op[at];
  const storage = plan.stall_storage[at];
  const [start, stop] = [plan.stall_start[at], plan.stall_stop[at]];
  const rows = [
    ['from', span(start, stop)],
    ['before', op >= 0 ? useOr(plan, runAfter(plan, op, start)) : 'the end of the step'],
  ];
  if (storage >= 0) {
    const wanted = arrives(plan, storage, start, stop) ? 'arrive' : 'leave';
    rows.push(['waits for', `${graphData.storageName(storage)} to ${wanted}`]);
    rows.push(['size', exactBytes(graphData.bytesOf(storage))], ...storageFacts(graphData, storage));
  }
  showTip(event, host, `Stall ${secondsText(stop - start)}`, rows);
}

// The op in a slot; undefined and -1 are none.
function useOr(plan, slot = -1) {
  if (slot < 0) return 'step boundary';
  const op = plan.order[slot];
  const name = plan.graphData.opTitle(op);
  return plan.isRepeat(slot) ? `${name}, run again` : name;
}

// The first run of an op that does not begin before a time.
const runAfter = (plan, op, seconds) => plan.slotsOf(op).find(slot => plan.op_start[slot] >= seconds);

// Whether a copy of a storage to the device ends while compute waits.
function arrives(plan, storage, start, stop) {
  return [...plan.in_storage].some((id, k) => id === storage && plan.in_stop[k] > start && plan.in_stop[k] <= stop);
}

const lastUse = (plan, storage, seconds) => plan.usesOf(storage).findLast(slot => plan.op_start[slot] < seconds);
const nextUse = (plan, storage, seconds) => plan.usesOf(storage).find(slot => plan.op_start[slot] >= seconds);
