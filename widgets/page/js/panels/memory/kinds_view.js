// Bytes on the device over time, stacked by kind, and the bytes of the same order with nothing swapped.
import { highest, steps } from './curve_columns.js';
import { KINDS } from '../../core/kinds.js';
import { tag } from '../../plots/axis_labels.js';
import { kindsTip } from './memory_tips.js';
import { within } from '../../plots/box_surface.js';
import { bytesText } from '../../core/units.js';

const SHADOW = 0.82; // opacity of the selection's bytes

export class KindsView {
  constructor(map) {
    this.map = map;
  }

  rebuild() {
    const { plan, axis } = this.map;
    this.places = Float64Array.from(plan.curve.times, seconds => axis.place(seconds));
    this.slotPlaces = Float64Array.from(plan.op_start, seconds => axis.place(seconds));
    this.without = plan.unswapped.reduce((most, bytes) => Math.max(most, bytes), 0);
  }

  // What is in a span of time has the whole height, so nothing fades for it.
  get focus() {
    const { focus } = this.map;
    return focus?.type === 'span' && !focus.addresses ? null : focus;
  }

  // Whether the unswapped bytes of this order exceed the plan's peak.
  get swapped() {
    const { moved, repeat_slot } = this.map.plan;
    return (moved > 0 || repeat_slot.length > 0) && this.without > this.map.plan.peak.bytes * 1.001;
  }
  get range() {
    const { full } = this.map.addresses;
    return { low: 0, high: this.swapped ? Math.max(full, this.without * 1.06) : full };
  }
  y(bytes) {
    const { top, bottom } = this.map.area;
    return bottom - (bytes / this.range.high) * (bottom - top);
  }

  get peakY() {
    return this.y(this.map.plan.peak.bytes);
  }

  paint(g, c) {
    const { axis, area, density, plan } = this.map;
    const { focus } = this;
    const width = area.right - area.left;
    const count = Math.max(1, Math.round(width * density));
    const { byKind, total } = plan.curve;
    if (!total.length) return;
    const at = highest(this.places, total, axis.from, axis.to, count);
    const perByte = (area.bottom - area.top) / this.range.high;
    within(g, area, () => {
      for (let kind = KINDS.length - 1; kind >= 0; kind--) {
        const sums = byKind[kind];
        const chart = column => area.bottom - sums[at[column]] * perByte;
        // upper kinds are painted first, so a faint kind clears its background before
        this.fill(g, focus ? [c.panel, c.kindFaint[kind]] : [c.kind[kind]], count, chart);
      }
      if (focus) this.paintHeld(g, c, focus, count, perByte);
      if (this.swapped) this.paintWithout(g, c, count, perByte);
    });
  }

  fill(g, colours, count, y) {
    const { left, right, bottom } = this.map.area;
    g.beginPath();
    g.moveTo(left, bottom);
    steps(g, left, right - left, count, y);
    g.lineTo(right, bottom);
    for (const colour of colours) {
      g.fillStyle = colour;
      g.fill();
    }
  }

  // The bytes of the selection alone, from the baseline.
  paintHeld(g, c, focus, count, perByte) {
    const { axis, area, plan } = this.map;
    const change = new Float64Array(count + 1);
    const perPlace = count / (axis.to - axis.from);
    const column = seconds => Math.max(0, Math.min(count, (axis.place(seconds) - axis.from) * perPlace));
    for (const storage of focus.storages) {
      const bytes = plan.graphData.bytesOf(storage);
      for (const row of plan.residencies(storage)) {
        const from = Math.floor(column(plan.residency_start[row]));
        const to = Math.ceil(column(plan.residency_stop[row]));
        if (to > from) {
          change[from] += bytes;
          change[to] -= bytes;
        }
      }
    }
    let held = 0;
    const heights = change.map(bytes => area.bottom - (held += bytes) * perByte);
    g.globalAlpha = SHADOW;
    this.fill(g, [c.ink], count, at => heights[at]);
    g.globalAlpha = 1;
  }

  paintWithout(g, c, count, perByte) {
    const { axis, area, plan } = this.map;
    const at = highest(this.slotPlaces, plan.unswapped, axis.from, axis.to, count);
    const y = column => Math.max(area.top + 1, area.bottom - plan.unswapped[at[column]] * perByte);
    g.strokeStyle = c.ink;
    g.setLineDash([4, 3]);
    g.beginPath();
    steps(g, area.left, area.right - area.left, count, y);
    g.stroke();
    g.setLineDash([]);
    const how = plan.repeat_slot.length ? 'with all kept' : 'without swapping';
    const text = `this order ${how}, most in use ${bytesText(this.without)}`;
    // placed where the line is lower, so that it does not run through the words
    const room = Math.ceil(((g.measureText(text).width + 12) * count) / (area.right - area.left));
    const clear = from => Math.min(...Array.from({ length: Math.min(room, count) }, (_, k) => y(from + k)));
    const left = clear(0) > clear(Math.max(0, count - room));
    const [x, align] = left ? [area.left + 6, 'left'] : [area.right - 6, 'right'];
    tag(g, c, text, x, area.top + 9, { ground: c.panel, ink: c.ink, align });
  }

  paintOver() {}

  point(event, x, y) {
    const { axis, area, store, host, plan } = this.map;
    const inside = x >= area.left && y >= area.top && y <= area.bottom && plan.slots;
    const seconds = axis.secondsAt(x);
    store.point(inside ? 'op' : null, inside ? plan.opAt(seconds) : 0);
    if (inside) kindsTip(event, host, plan, seconds);
    else this.map.hideTip();
  }

  click(x, y) {
    const { axis, area, store, plan } = this.map;
    if (x < area.left || y < area.top || y > area.bottom || !plan.slots) store.set({ selection: null });
    else store.select('op', plan.opAt(axis.secondsAt(x)));
  }
}
