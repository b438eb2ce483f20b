// Tooltips of the streams, in exact numbers.
import { KIND_LABELS, PHASES, kindVariable } from '../../core/kinds.js';
import { layoutRows } from '../memory/memory_tips.js';
import { showTip } from '../../plots/tooltip.js';
import { exactBytes, countText, secondsText } from '../../core/units.js';

const span = (start, stop) => `${secondsText(start, 3)} to ${secondsText(stop, 3)}`;

export function opTip(event, host, plan, op) {
  const { graphData } = plan;
  const slot = plan.slotOf(op);
  const known = [
    ['result', graphData.opLayout(op)],
    ['source', graphData.sourceOf(op)],
  ].filter(([, value]) => value);
  showTip(event, host, graphData.opName(op), [
    ['op', graphData.targetOf(op)],
    ...known,
    ['phase', `${PHASES[graphData.op_phase[op]]}, op ${countText(slot + 1)} of ${countText(plan.slots)}`],
    ['runs', span(plan.op_start[slot], plan.op_stop[slot])],
    ['takes', secondsText(plan.secondsOf(op), 3)],
    ['working set', exactBytes(graphData.op_working_set[op])],
  ]);
}

// A copy by its position in the plan's columns of copies out or in.
export function copyTip(event, host, plan, out, at) {
  const { graphData } = plan;
  const storage = (out ? plan.out_storage : plan.in_storage)[at];
  const start = (out ? plan.out_start : plan.in_start)[at];
  const stop = (out ? plan.out_stop : plan.in_stop)[at];
  const kind = graphData.kindOf(storage);
  const rows = [
    ['kind', KIND_LABELS[kind], kindVariable(kind)],
    ...layoutRows(graphData, storage),
    ['size', exactBytes(graphData.bytesOf(storage))],
    [out ? 'leaves' : 'arrives', span(start, stop)],
  ];
  if (stop > start) rows.push(['rate', `${(graphData.bytesOf(storage) / (stop - start) / 1e9).toFixed(1)} GB/s`]);
  if (out) rows.push(['last use', opOr(graphData, lastUse(plan, storage, start))]);
  else rows.push(['next use', opOr(graphData, nextUse(plan, storage, stop))]);
  showTip(event, host, graphData.storageName(storage), rows);
}

export function stallTip(event, host, plan, at) {
  const { graphData } = plan;
  const op = plan.stall_op[at];
  const storage = plan.stall_storage[at];
  const [start, stop] = [plan.stall_start[at], plan.stall_stop[at]];
  const rows = [
    ['from', span(start, stop)],
    ['before', op >= 0 ? opOr(graphData, op) : 'the end of the step'],
  ];
  if (storage >= 0) {
    const wanted = arrives(plan, storage, start, stop) ? 'arrive' : 'leave';
    rows.push(['waits for', `${graphData.storageName(storage)} to ${wanted}`]);
    rows.push(['size', exactBytes(graphData.bytesOf(storage))]);
  }
  showTip(event, host, `Stall ${secondsText(stop - start)}`, rows);
}

const opOr = (graphData, op) => (op < 0 ? 'step boundary' : `${graphData.opName(op)} ${graphData.shortTarget(op)}`);

// Whether a copy of a storage to the device ends while compute waits.
function arrives(plan, storage, start, stop) {
  return [...plan.in_storage].some((id, k) => id === storage && plan.in_stop[k] > start && plan.in_stop[k] <= stop);
}

function lastUse(plan, storage, seconds) {
  let last = -1;
  for (const op of plan.graphData.uses(storage)) {
    if (plan.startOf(op) < seconds && (last < 0 || plan.slotOf(op) > plan.slotOf(last))) last = op;
  }
  return last;
}
function nextUse(plan, storage, seconds) {
  let next = -1;
  for (const op of plan.graphData.uses(storage)) {
    if (plan.startOf(op) >= seconds && (next < 0 || plan.slotOf(op) < plan.slotOf(next))) next = op;
  }
  return next;
}
