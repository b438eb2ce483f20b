// Tooltips of the memory map, in exact numbers.
import { KINDS, KIND_LABELS, kindVariable } from '../../core/kinds.js';
import { storageFacts } from '../../data/neighbours.js';
import { hideTip, showTip } from '../../plots/tooltip.js';
import { addressesText, countText, exactBytes, secondsText } from '../../core/units.js';
import { againAt, awayFact } from './why_moved.js';

// A residency, by its position in the plan's columns; -1 for none.
export function residencyTip(event, host, plan, residency) {
  if (residency < 0) {
    hideTip(host);
    return;
  }
  const { graphData } = plan;
  const storage = plan.residency_storage[residency];
  const kind = graphData.kindOf(storage);
  const residencies = [...plan.residencies(storage)];
  const low = plan.residency_offset[residency];
  const high = low + graphData.bytesOf(storage);
  const rows = [
    ['kind', KIND_LABELS[kind], kindVariable(kind)],
    ...storageFacts(graphData, storage),
    ['size', exactBytes(graphData.bytesOf(storage))],
    ['address', addressesText(low, high)],
    ['here', `${secondsText(plan.residency_start[residency], 3)} to ${secondsText(plan.residency_stop[residency], 3)}`],
    ['ops', `${countText(plan.residency_slot[residency] + 1)} to ${countText(plan.residency_slot_stop[residency])}`],
  ];
  const [arrive, leave] = [plan.residency_arrive[residency], plan.residency_leave[residency]];
  if (plan.residency_recomputed[residency]) rows.push(['recomputed', againAt(plan, plan.residency_slot[residency])]);
  if (arrive >= 0) rows.push(['copy in ends', secondsText(arrive, 3)]);
  if (leave >= 0) rows.push(['copy out begins', secondsText(leave, 3)]);
  if (residencies.length > 1) {
    rows.push(['residency', `${residencies.indexOf(residency) + 1} of ${residencies.length}`]);
    rows.push(awayFact(graphData, plan, storage));
  }
  showTip(event, host, graphData.storageName(storage), rows);
}

// All kinds at a time.
export function kindsTip(event, host, plan, seconds) {
  if (!plan.slots) {
    hideTip(host);
    return;
  }
  const { graphData } = plan;
  const slot = plan.slotAt(seconds);
  const held = plan.bytesAt(seconds);
  const total = held.reduce((sum, bytes) => sum + bytes, 0);
  const rows = KINDS.map((_, kind) => [KIND_LABELS[kind], exactBytes(held[kind]), kindVariable(kind)])
    .filter((_, kind) => held[kind] > 0)
    .reverse();
  rows.unshift(['time', secondsText(seconds, 3)], ['source', graphData.sourceOf(plan.order[slot])]);
  rows.push(['total', exactBytes(total)]);
  rows.push([plan.repeat_slot.length ? 'with all kept' : 'without swapping', exactBytes(plan.unswapped[slot])]);
  showTip(event, host, `${graphData.opName(plan.order[slot])}, ${plan.phaseAt(slot)}`, rows);
}
