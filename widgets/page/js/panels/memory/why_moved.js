// Why a tensor is swapped, recomputed or stays, as far as the plan shows: its absences, and the time of a copy.
import { secondsText } from '../../core/units.js';

const HELD = 2; // kinds up to this one outlive the step

// How often a plan copies each storage out or in, whichever is more; 0 if it is not swapped.
export function swapsOf(plan) {
  if (!known.has(plan)) {
    const [out, back] = [plan.out_storage, plan.in_storage].map(storages => {
      const counts = new Int32Array(plan.graphData.storages);
      for (const storage of storages) counts[storage] += 1;
      return counts;
    });
    known.set(
      plan,
      out.map((count, storage) => Math.max(count, back[storage])),
    );
  }
  return known.get(plan);
}
const known = new WeakMap();

// How long it is off the device: between its residencies and, if it outlives the step, also before and after them.
// Returns a name and a text; if there are several absences, the name says so.
export function awayFact(graph, plan, storage) {
  const residencies = plan.residencies(storage);
  const between = plan.awaySeconds(storage);
  const held = residencies.reduce((sum, k) => sum + plan.residency_stop[k] - plan.residency_start[k], 0);
  const away = graph.kindOf(storage) > HELD ? between : plan.step_seconds - held;
  const once = residencies.length < 2 || (residencies.length === 2 && away <= between * 1.001);
  return [once ? 'away' : 'away in all', secondsText(away)];
}

export function whyMoved(graph, plan, storage) {
  const residencies = plan.residencies(storage);
  if (!residencies.length) return graph.bytesOf(storage) ? 'never on the device' : 'takes no memory';
  if (residencies.length > 1) return whyAway(graph, plan, storage, residencies);
  const waits = graph.kindOf(storage) <= HELD && plan.residency_start[residencies[0]] > 0;
  if (waits) return 'waits on the host until its first use';
  if (swapsOf(plan)[storage]) return 'on the host from its last use on';
  return means(plan) ? whyKept(graph, plan, storage, residencies[0]) : '';
}

// The two uses around its longest absence.
function whyAway(graph, plan, storage, residencies) {
  let longest = 1;
  const away = k => plan.residency_start[residencies[k]] - plan.residency_stop[residencies[k - 1]];
  for (let k = 2; k < residencies.length; k++) if (away(k) > away(longest)) longest = k;
  const slots = plan.usesOf(storage);
  const next = slots.findIndex(slot => plan.op_start[slot] >= plan.residency_start[residencies[longest]] - 1e-9);
  if (next < 1) return '';
  const [from, to] = [plan.op_stop[slots[next - 1]], plan.op_start[slots[next]]].map(seconds => secondsText(seconds));
  if (!plan.residency_recomputed[residencies[longest]]) {
    return `idle from ${from} to ${to}, until ${graph.shortTarget(plan.order[slots[next]])}`;
  }
  const trip = roundTrip(graph, plan, storage);
  const copies = trip ? `; a copy out and back takes ${secondsText(trip)}` : '';
  return `idle from ${from} to ${to}, until ${againAt(plan, plan.residency_slot[residencies[longest]])}${copies}`;
}

// What makes a storage again.
export const againAt = (plan, slot) =>
  `${plan.graphData.shortTarget(plan.order[slot])} runs again for ${secondsText(plan.secondsAt(slot))}`;

// What a plan does with what is not kept; '' if it keeps everything.
function means({ out_storage, in_storage, repeat_slot }) {
  const copies = out_storage.length + in_storage.length ? ['swapped'] : [];
  return [...copies, ...(repeat_slot.length ? ['recomputed'] : [])].join(' or ');
}

function whyKept(graph, plan, storage, residency) {
  const { seconds, slot } = plan.peak;
  const there = plan.residency_start[residency] <= seconds && plan.residency_stop[residency] > seconds;
  if (!there) return 'kept because it is not there at the peak';
  if (plan.usesOf(storage).includes(slot)) return 'kept because the op at the peak uses it';
  const idle = longestIdle(plan, storage);
  const trip = roundTrip(graph, plan, storage);
  if (trip && idle < trip) {
    const takes = `a copy out and back takes ${secondsText(trip)}`;
    return `kept because it is idle ${secondsText(idle)} at most, and ${takes}`;
  }
  return `kept because it fits beside what is ${means(plan)}`;
}

function longestIdle(plan, storage) {
  const slots = plan.usesOf(storage);
  let longest = 0;
  for (let k = 1; k < slots.length; k++) {
    longest = Math.max(longest, plan.op_start[slots[k]] - plan.op_stop[slots[k - 1]]);
  }
  return longest;
}

// Seconds of a copy out and a copy in, at the rates of the plan's own copies.
function roundTrip(graph, plan, storage) {
  const rate = (storages, starts, stops) => {
    let [bytes, seconds] = [0, 0];
    storages.forEach((each, k) => {
      bytes += graph.bytesOf(each);
      seconds += stops[k] - starts[k];
    });
    return seconds > 0 ? bytes / seconds : 0;
  };
  const out = rate(plan.out_storage, plan.out_start, plan.out_stop);
  const back = rate(plan.in_storage, plan.in_start, plan.in_stop);
  const known = [out || back, back || out].filter(Boolean);
  return known.reduce((sum, each) => sum + graph.bytesOf(storage) / each, 0);
}
