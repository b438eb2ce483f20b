// What the streams say of what is pointed at, in exact numbers.
import { KIND_LABELS, PHASES, kindVariable } from './kinds.js';
import { layoutRows } from './memory_tips.js';
import { showTip } from './tooltip.js';
import { exactBytes, countText, secondsText } from './units.js';

const span = (start, stop) => `${secondsText(start, 3)} to ${secondsText(stop, 3)}`;

export function opTip(event, host, plan, op) {
  const { scene } = plan;
  const slot = plan.slotOf(op);
  const known = [
    ['result', scene.opLayout(op)],
    ['source', scene.sourceOf(op)],
  ].filter(([, value]) => value);
  showTip(event, host, scene.opName(op), [
    ['op', scene.targetOf(op)],
    ...known,
    ['phase', `${PHASES[scene.op_phase[op]]}, op ${countText(slot + 1)} of ${countText(plan.slots)}`],
    ['runs', span(plan.op_start[slot], plan.op_stop[slot])],
    ['takes', secondsText(plan.secondsOf(op), 3)],
    ['working set', exactBytes(scene.op_working_set[op])],
  ]);
}

// A copy by its position in the plan's columns of copies out or in.
export function copyTip(event, host, plan, out, at) {
  const { scene } = plan;
  const storage = (out ? plan.out_storage : plan.in_storage)[at];
  const start = (out ? plan.out_start : plan.in_start)[at];
  const stop = (out ? plan.out_stop : plan.in_stop)[at];
  const kind = scene.kindOf(storage);
  const rows = [
    ['kind', KIND_LABELS[kind], kindVariable(kind)],
    ...layoutRows(scene, storage),
    ['size', exactBytes(scene.bytesOf(storage))],
    [out ? 'leaves' : 'arrives', span(start, stop)],
  ];
  if (stop > start) rows.push(['rate', `${(scene.bytesOf(storage) / (stop - start) / 1e9).toFixed(1)} GB/s`]);
  if (out) rows.push(['last use', opOr(scene, lastUse(plan, storage, start))]);
  else rows.push(['next use', opOr(scene, nextUse(plan, storage, stop))]);
  showTip(event, host, scene.storageName(storage), rows);
}

export function stallTip(event, host, plan, at) {
  const { scene } = plan;
  const op = plan.stall_op[at];
  const storage = plan.stall_storage[at];
  const [start, stop] = [plan.stall_start[at], plan.stall_stop[at]];
  const rows = [
    ['from', span(start, stop)],
    ['before', op >= 0 ? opOr(scene, op) : 'the end of the step'],
  ];
  if (storage >= 0) {
    const wanted = arrives(plan, storage, start, stop) ? 'arrive' : 'leave';
    rows.push(['waits for', `${scene.storageName(storage)} to ${wanted}`]);
    rows.push(['size', exactBytes(scene.bytesOf(storage))]);
  }
  showTip(event, host, `Stall ${secondsText(stop - start)}`, rows);
}

const opOr = (scene, op) => (op < 0 ? 'step boundary' : `${scene.opName(op)} ${scene.shortTarget(op)}`);

// Whether a copy of a storage to the device ends while compute waits.
function arrives(plan, storage, start, stop) {
  return [...plan.in_storage].some((id, k) => id === storage && plan.in_stop[k] > start && plan.in_stop[k] <= stop);
}

function lastUse(plan, storage, seconds) {
  let last = -1;
  for (const op of plan.scene.uses(storage)) {
    if (plan.startOf(op) < seconds && (last < 0 || plan.slotOf(op) > plan.slotOf(last))) last = op;
  }
  return last;
}
function nextUse(plan, storage, seconds) {
  let next = -1;
  for (const op of plan.scene.uses(storage)) {
    if (plan.startOf(op) >= seconds && (next < 0 || plan.slotOf(op) < plan.slotOf(next))) next = op;
  }
  return next;
}
