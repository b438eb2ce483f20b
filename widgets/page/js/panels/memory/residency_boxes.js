// The residencies of a plan as boxes of time axis positions and addresses, ordered by start. Each block of boxes stores
// its last stop, so that the boxes at some time are found without scanning all.
import { ascending, countUpTo } from '../../core/sort_times.js';

const BLOCK = 64;

export class StayBoxes {
  constructor(plan, axis) {
    const { graphData } = plan;
    this.residency = ascending(plan.residency_start);
    this.count = this.residency.length;
    const column = of => Float64Array.from(this.residency, of);
    this.from = column(residency => axis.place(plan.residency_start[residency]));
    this.to = column(residency => axis.place(plan.residency_stop[residency]));
    this.low = column(residency => plan.residency_offset[residency]);
    this.high = column(row => plan.residency_offset[row] + graphData.storage_bytes[plan.residency_storage[row]]);
    // ends of a copy in and starts of a copy out, NaN if there is none
    this.arrive = column(residency => axis.place(plan.residency_arrive[residency]));
    this.leave = column(residency => axis.place(plan.residency_leave[residency]));
    this.copied = Uint8Array.from(this.residency, (_, i) => Number(this.arrive[i] >= 0 || this.leave[i] >= 0));
    this.recomputed = Uint8Array.from(this.residency, residency => plan.residency_recomputed[residency]);
    this.storage = Uint32Array.from(this.residency, residency => plan.residency_storage[residency]);
    this.kind = Uint8Array.from(this.storage, storage => graphData.storage_kind[storage]);
    this.latest = new Float64Array(Math.ceil(this.count / BLOCK)).fill(-Infinity);
    for (let i = 0; i < this.count; i++) {
      const block = (i / BLOCK) | 0;
      if (this.to[i] > this.latest[block]) this.latest[block] = this.to[i];
    }
    this.list = new Uint32Array(this.count);
  }

  // Boxes that intersect the range between two positions; the list is valid until the next call.
  between(from, to) {
    const { list, latest } = this;
    const end = countUpTo(this.from, to);
    let found = 0;
    for (let block = 0; block * BLOCK < end; block++) {
      if (latest[block] < from) continue;
      const stop = Math.min(end, (block + 1) * BLOCK);
      for (let i = block * BLOCK; i < stop; i++) if (this.to[i] >= from) list[found++] = i;
    }
    return list.subarray(0, found);
  }

  // The box at a position and an address, else the largest less than `slack` positions and `room` bytes away.
  at(place, address, slack, room) {
    let best = -1;
    let size = 0;
    for (const i of this.between(place - slack, place + slack)) {
      if (this.low[i] > address + room || this.high[i] < address - room) continue;
      const inside = this.from[i] <= place && this.to[i] >= place && this.low[i] <= address && this.high[i] >= address;
      const worth = this.high[i] - this.low[i] + (inside ? 1e15 : 0);
      if (worth > size) {
        size = worth;
        best = i;
      }
    }
    return best;
  }
}
