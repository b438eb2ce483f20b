// A span of time or addresses as a feature: its keys, and what is being dragged. It is selected like a tensor or an op,
// so clearing it, zooming to it, linking it and saving it with the page are those of the selection.
import { registerFeature } from '../../core/features.js';

const STEPS = 24; // key presses that cross the addresses in view

// Extend the span, or the selected op, by an op; from nothing, begin with the first op in view.
function extendTime({ store, axis }, by) {
  const { plan, selection, focus } = store;
  if (!plan?.slots || !(plan.step_seconds > 0)) return false;
  const span = selection?.type === 'span' ? selection : null;
  const [first, last] = span?.time ? slotsOf(span.time, plan) : [];
  const chosen = first ?? (focus?.type === 'op' ? plan.slotOf(focus.id) : plan.slotAt(axis.seconds(axis.from)));
  // an op that takes no time would change nothing
  for (let slot = (last ?? chosen) + by; slot >= 0 && slot < plan.slots; slot += by) {
    const time = timeOf(plan, chosen, slot);
    if (span?.time && Math.abs(time[1] - span.time[1]) < 1e-9) continue;
    store.set({ selection: { type: 'span', time, addresses: span?.addresses ?? null } });
    break;
  }
  return true;
}

// From the slot that stays to the one that moves, as shares of the step; both ops are in it.
function timeOf(plan, stays, moves) {
  const share = seconds => seconds / plan.step_seconds;
  const { op_start: start, op_stop: stop } = plan;
  return moves >= stays ? [share(start[stays]), share(stop[moves])] : [share(stop[stays]), share(start[moves])];
}

// The reverse.
function slotsOf([stays, moves], plan) {
  const at = (share, tie) => plan.slotAt((share + tie) * plan.step_seconds);
  const tie = stays <= moves ? 1e-9 : -1e-9;
  return [at(stays, tie), at(moves, -tie)];
}

// Move the upper end of the addresses; begin with the selected tensor, or with the addresses in view.
function extendAddresses({ root, store }, by) {
  const { plan, selection, focus } = store;
  const { addresses } = root.querySelector('.sw-memory .plot')?.plot ?? {};
  if (!plan?.slots || !addresses || store.memoryView !== 'address' || !focus) return false;
  const { time = null, addresses: chosen = null } = selection.type === 'span' ? selection : {};
  const [stays, moves] = chosen ?? placeOf(plan, focus) ?? [addresses.low, addresses.high];
  const to = Math.max(0, Math.min(addresses.full, moves + (by * addresses.span) / STEPS));
  if (to !== stays) store.set({ selection: { type: 'span', time, addresses: [stays, to] } });
  return true;
}

function placeOf(plan, { type, id }) {
  const [row] = type === 'storage' ? plan.residencies(id) : [];
  if (row === undefined) return null;
  return [plan.residency_offset[row], plan.residency_offset[row] + plan.graphData.bytesOf(id)];
}

function cancelDrag({ store }) {
  if (!store.draggedSpan) return false;
  store.set({ draggedSpan: null });
  return true;
}

registerFeature({
  name: 'span',
  label: 'Span',
  state: { draggedSpan: null },
  keys: {
    Escape: cancelDrag,
    'Shift-ArrowLeft': bench => extendTime(bench, -1),
    'Shift-ArrowRight': bench => extendTime(bench, 1),
    'Shift-ArrowUp': bench => extendAddresses(bench, 1),
    'Shift-ArrowDown': bench => extendAddresses(bench, -1),
  },
  help: [
    [['Shift', 'drag'], 'sum up a span of time, of addresses at their axis, or of both'],
    [['Shift', '← →'], 'begin or extend a span of time by an op'],
    [['Shift', '↑ ↓'], 'begin or extend a span of addresses'],
  ],
});
