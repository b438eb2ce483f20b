// One time axis for the memory map and the streams: the same view, zoom and keys. Its unit is seconds or slots.
import { placeLabels } from './axis_labels.js';
import { ticks } from './ticks.js';
import { countText } from '../core/units.js';

const GUTTER = 58;
const RIGHT = 12;
const DEEPEST = 4000; // largest magnification of the whole step

export class TimeAxis {
  constructor() {
    Object.assign(this, { gutter: GUTTER, right: RIGHT, unit: 'time', plan: null, width: 600, from: 0, to: 1, end: 1 });
    this.listeners = new Set();
  }

  // Call `listener(remapped)` when the view changes; `remapped` if positions on the axis change, as with a new plan.
  on(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
  changed(remapped) {
    for (const listener of this.listeners) listener(remapped);
  }

  // Keep the same share of the step in view.
  setPlan(plan) {
    const [a, b] = this.plan ? [this.from / this.end, this.to / this.end] : [0, 1];
    this.plan = plan;
    this.end = this.length();
    [this.from, this.to] = [a * this.end, b * this.end];
    this.changed(true);
  }

  setUnit(unit) {
    if (unit === this.unit || !this.plan) {
      this.unit = unit;
      return;
    }
    const [a, b] = [this.seconds(this.from), this.seconds(this.to)];
    this.unit = unit;
    this.end = this.length();
    [this.from, this.to] = [this.place(a), this.place(b)];
    if (!(this.to > this.from)) [this.from, this.to] = [0, this.end];
    this.changed(true);
  }

  length() {
    return Math.max(this.unit === 'time' ? this.plan.step_seconds : this.plan.slots, 1e-9);
  }

  // Convert seconds to positions on the axis and back; in slots, time is linear within an op and the wait after it.
  place(seconds) {
    if (this.unit === 'time') return seconds;
    if (!this.plan.slots) return 0;
    const slot = this.plan.slotAt(seconds);
    const start = this.plan.op_start[slot];
    const next = slot + 1 < this.plan.slots ? this.plan.op_start[slot + 1] : this.plan.step_seconds;
    return slot + Math.min(1, Math.max(0, (seconds - start) / Math.max(1e-12, next - start)));
  }
  seconds(place) {
    if (this.unit === 'time' || !this.plan.slots) return place;
    const slot = Math.max(0, Math.min(this.plan.slots - 1, Math.floor(place)));
    const start = this.plan.op_start[slot];
    const next = slot + 1 < this.plan.slots ? this.plan.op_start[slot + 1] : this.plan.step_seconds;
    return start + (place - slot) * (next - start);
  }

  get inner() {
    return Math.max(10, this.width - this.gutter - this.right);
  }
  get scale() {
    return this.inner / (this.to - this.from);
  } // pixels per unit
  xOf(place) {
    return this.gutter + (place - this.from) * this.scale;
  }
  x(seconds) {
    return this.xOf(this.place(seconds));
  }
  placeAt(x) {
    return Math.max(0, Math.min(this.end, this.from + (x - this.gutter) / this.scale));
  }
  secondsAt(x) {
    return this.seconds(this.placeAt(x));
  }

  // The width of the plots with this axis; all are equally wide.
  setWidth(width) {
    if (width === this.width) return;
    this.width = width;
    this.changed(false);
  }

  view(from, to) {
    const span = Math.min(this.end, Math.max(this.end / DEEPEST, to - from));
    this.from = Math.max(0, Math.min(this.end - span, from));
    this.to = this.from + span;
    this.changed(false);
  }
  zoom(factor, x = this.gutter + this.inner / 2) {
    const span = Math.max(this.end / DEEPEST, Math.min(this.end, (this.to - this.from) * factor));
    const share = (x - this.gutter) / this.inner;
    const centre = this.from + (x - this.gutter) / this.scale;
    this.view(centre - share * span, centre + (1 - share) * span);
  }
  pan(pixels) {
    const by = pixels / this.scale;
    this.view(this.from + by, this.to + by);
  }
  // Show the time from `a` to `b` seconds, with a share of it on both sides.
  fit(a = 0, b = this.plan.step_seconds, margin = 0) {
    const [from, to] = [this.place(a), this.place(b)];
    this.view(from - (to - from) * margin, to + (to - from) * margin);
  }

  // The ticks of the axis: pairs of a pixel and a text.
  marks() {
    const { step, values } = ticks(this.from, this.to, this.inner / 84);
    const span = this.to - this.from;
    const whole = this.unit === 'time' ? values : values.filter(value => value % 1 === 0); // only whole op numbers
    const text = value => (this.unit === 'time' ? timeLabel(value, step, span) : 'op ' + countText(value));
    return whole
      .map(value => [Math.round(this.xOf(value)), text(value)])
      .filter(([x]) => x >= this.gutter - 1 && x <= this.width - this.right + 1);
  }

  paint(g, c, top, bottom) {
    const marks = this.marks();
    g.fillStyle = c.grid;
    for (const [x] of marks) g.fillRect(x, top, 1, bottom - top);
    g.fillStyle = c.third;
    placeLabels(g, marks, { left: this.gutter - 12, right: this.width - 4, y: bottom + 9 });
  }
}

// All labels of an axis have one unit and enough digits to distinguish them.
function timeLabel(seconds, step, span) {
  const [size, name] = span >= 0.4 ? [1, 's'] : span >= 4e-4 ? [1e-3, 'ms'] : [1e-6, 'µs'];
  const digits = Math.max(0, Math.min(4, -Math.floor(Math.log10(step / size) + 1e-9)));
  return (seconds / size).toFixed(digits) + ' ' + name;
}
