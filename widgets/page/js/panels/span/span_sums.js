// The sums of a span of time and addresses: what is in it by kind and by module, the most bytes at once, the bytes
// that are copied, and how long the streams are busy. Each is one pass over the columns of the plan.
import { KINDS } from '../../core/kinds.js';
import { largestModules } from './largest_modules.js';

// `bounds`: of a span, in seconds and bytes.
export function spanSums(plan, bounds) {
  const { graphData } = plan;
  const rows = plan.residenciesIn(bounds);
  const inside = new Uint8Array(plan.residency_storage.length);
  const counted = new Uint8Array(graphData.storages);
  const kinds = new Float64Array(KINDS.length);
  const own = new Float64Array(graphData.modules);
  let [storages, bytes] = [0, 0];
  for (const row of rows) {
    const storage = plan.residency_storage[row];
    inside[row] = 1;
    if (counted[storage]) continue; // it comes back in the same span
    counted[storage] = 1;
    storages += 1;
    bytes += graphData.storage_bytes[storage];
    kinds[graphData.storage_kind[storage]] += graphData.storage_bytes[storage];
    own[graphData.storage_module[storage]] += graphData.storage_bytes[storage];
  }
  const [out, into] = copiesOf(plan).map(copies => copied(plan, copies, inside, bounds));
  return {
    storages,
    bytes,
    kinds,
    modules: largestModules(graphData, own),
    most: mostAtOnce(plan, inside),
    out,
    into,
    busy: busy(plan, bounds),
  };
}

// The most bytes that some residencies hold at once. All of them are there at some time of the span, so before it what
// they hold only grows, and after it only shrinks.
function mostAtOnce(plan, inside) {
  const { marks, order } = plan.changes;
  const { storage_bytes: bytes } = plan.graphData;
  let [held, most] = [0, 0];
  for (let i = 0; i < order.length; ) {
    const time = marks[order[i]];
    for (; i < order.length && marks[order[i]] === time; i++) {
      const row = order[i] >> 1;
      if (inside[row]) held += (order[i] & 1 ? -1 : 1) * bytes[plan.residency_storage[row]];
    }
    if (held > most) most = held;
  }
  return most;
}

// Copies out and copies in: their columns, and `row`, the residency that each ends or begins.
function copiesOf(plan) {
  if (!known.has(plan)) {
    const copies = ['out', 'in'].map(way => {
      const [storage, start, stop] = ['storage', 'start', 'stop'].map(name => plan[`${way}_${name}`]);
      const row = Int32Array.from(storage, (id, k) => {
        const middle = (start[k] + stop[k]) / 2;
        const there = other => plan.residency_start[other] <= middle && plan.residency_stop[other] >= middle;
        return plan.residencies(id).find(there) ?? -1;
      });
      return { storage, start, stop, row };
    });
    known.set(plan, copies);
  }
  return known.get(plan);
}
const known = new WeakMap();

// Bytes of copies of some residencies; a copy that is partly in the span counts in part.
function copied(plan, { storage, start, stop, row }, inside, { from, to }) {
  let bytes = 0;
  for (let k = 0; k < storage.length; k++) {
    if (!inside[row[k]] || start[k] >= to || stop[k] <= from) continue;
    const share = (Math.min(stop[k], to) - Math.max(start[k], from)) / (stop[k] - start[k]);
    bytes += plan.graphData.storage_bytes[storage[k]] * (share >= 0 ? share : 1); // one that takes no time counts whole
  }
  return bytes;
}

// Seconds of the span in which compute, collectives, and copies out and in are under way.
function busy(plan, { from, to }) {
  const sum = (starts, stops, counts = () => true) => {
    let seconds = 0;
    for (let k = 0; k < starts.length; k++) {
      const overlap = Math.min(stops[k], to) - Math.max(starts[k], from);
      if (overlap > 0 && counts(k)) seconds += overlap;
    }
    return seconds;
  };
  const collectives = new Set(plan.collective_op);
  return {
    compute: sum(plan.op_start, plan.op_stop, slot => !collectives.has(plan.order[slot])),
    ...(collectives.size ? { collective: sum(plan.collective_start, plan.collective_stop) } : {}),
    out: sum(plan.out_start, plan.out_stop),
    in: sum(plan.in_start, plan.in_stop),
  };
}
