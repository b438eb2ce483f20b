// What the memory map says of what is pointed at, in exact numbers.
import { KINDS, KIND_LABELS, PHASES, kindVariable } from './kinds.js';
import { hideTip, showTip } from './tooltip.js';
import { bytesUnit, countText, exactBytes, secondsText } from './units.js';
import { awayFact } from './why_moved.js';

// Shape and dtype of a storage, and the line that makes it, as far as they are known.
export function layoutRows(scene, storage) {
  const rows = [
    ['shape', scene.storageLayout(storage)],
    ['made at', scene.sourceMaking(storage)],
  ];
  return rows.filter(([, value]) => value);
}

// A stay, by its position in the plan's columns; -1: there is none.
export function stayTip(event, host, plan, stay) {
  if (stay < 0) {
    hideTip(host);
    return;
  }
  const { scene } = plan;
  const storage = plan.stay_storage[stay];
  const kind = scene.kindOf(storage);
  const stays = [...plan.stays(storage)];
  const low = plan.stay_offset[stay];
  const high = low + scene.bytesOf(storage);
  const unit = bytesUnit(high);
  const address = bytes => Number((bytes / unit.size).toFixed(unit.name === 'GiB' ? 4 : 2));
  const rows = [
    ['kind', KIND_LABELS[kind], kindVariable(kind)],
    ...layoutRows(scene, storage),
    ['size', exactBytes(scene.bytesOf(storage))],
    ['address', `${address(low)} to ${address(high)} ${unit.name}`],
    ['here', `${secondsText(plan.stay_start[stay], 3)} to ${secondsText(plan.stay_stop[stay], 3)}`],
    ['ops', `${countText(plan.stay_slot[stay] + 1)} to ${countText(plan.stay_slot_stop[stay])}`],
  ];
  if (plan.stay_arrive[stay] >= 0) rows.push(['copy in ends', secondsText(plan.stay_arrive[stay], 3)]);
  if (plan.stay_leave[stay] >= 0) rows.push(['copy out begins', secondsText(plan.stay_leave[stay], 3)]);
  if (stays.length > 1) {
    rows.push(['stay', `${stays.indexOf(stay) + 1} of ${stays.length}`]);
    rows.push(awayFact(scene, plan, storage));
  }
  showTip(event, host, scene.storageName(storage), rows);
}

// All kinds at a time.
export function kindsTip(event, host, plan, seconds) {
  if (!plan.slots) {
    hideTip(host);
    return;
  }
  const { scene } = plan;
  const op = plan.opAt(seconds);
  const held = plan.bytesAt(seconds);
  const total = held.reduce((sum, bytes) => sum + bytes, 0);
  const rows = KINDS.map((_, kind) => [KIND_LABELS[kind], exactBytes(held[kind]), kindVariable(kind)])
    .filter((_, kind) => held[kind] > 0)
    .reverse();
  rows.unshift(['time', secondsText(seconds, 3)]);
  rows.push(['total', exactBytes(total)]);
  rows.push(['without swapping', exactBytes(plan.unswapped[plan.slotAt(seconds)])]);
  showTip(event, host, `${scene.opName(op)}, ${PHASES[scene.op_phase[op]]}`, rows);
}
