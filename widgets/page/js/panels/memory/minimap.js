// The whole step in small, and the part in view: drag to choose another part, or drag the part or its edges.
import { highest, steps } from './curve_columns.js';

const EDGE = 6; // pixels beside an edge that still grab it
const HEIGHT = 34;
const CURSORS = { from: 'ew-resize', to: 'ew-resize', pan: 'grab', new: 'crosshair' };

export class Minimap {
  constructor(map) {
    this.map = map;
  }

  static get height() {
    return HEIGHT;
  }

  rebuild() {
    const { plan, axis } = this.map;
    this.places = Float64Array.from(plan.curve.times, seconds => axis.place(seconds));
    this.columns = null;
  }

  get area() {
    const { left, right } = this.map.area;
    return { left, right, top: this.map.height - HEIGHT + 4, bottom: this.map.height - 5 };
  }
  xOf(place) {
    const { left, right } = this.area;
    return left + (place / this.map.axis.end) * (right - left);
  }
  placeAt(x) {
    const { left, right } = this.area;
    return Math.max(0, Math.min(1, (x - left) / (right - left))) * this.map.axis.end;
  }

  paint(g, c) {
    const { axis, plan } = this.map;
    const { left, right, top, bottom } = this.area;
    const { total } = plan.curve;
    const count = Math.max(1, Math.round(right - left));
    if (this.columns?.length !== count) this.columns = highest(this.places, total, 0, axis.end, count);
    g.fillStyle = c.sunken;
    g.fillRect(left, top, right - left, bottom - top);
    if (total.length) {
      const perByte = (bottom - top - 2) / Math.max(1, plan.peak.bytes);
      g.fillStyle = c.strong;
      g.beginPath();
      g.moveTo(left, bottom);
      steps(g, left, right - left, count, column => bottom - total[this.columns[column]] * perByte);
      g.lineTo(right, bottom);
      g.fill();
    }
    this.paintWindow(g, c);
    this.paintSpan(g, c);
    g.fillStyle = c.third;
    g.textAlign = 'right';
    g.fillText('step', left - 6, (top + bottom) / 2);
    g.textAlign = 'left';
  }

  paintWindow(g, c) {
    const { axis } = this.map;
    const { left, right, top, bottom } = this.area;
    const [from, to] = [this.xOf(axis.from), this.xOf(axis.to)];
    g.fillStyle = c.panel;
    g.globalAlpha = 0.62;
    g.fillRect(left, top, from - left, bottom - top);
    g.fillRect(to, top, right - to, bottom - top);
    g.globalAlpha = 1;
    g.strokeStyle = c.second;
    g.strokeRect(from + 0.5, top + 0.5, Math.max(1, to - from - 1), bottom - top - 1);
    g.fillStyle = c.second;
    for (const x of [from, to]) g.fillRect(x - 1.5, top + 7, 3, bottom - top - 14);
  }

  // Where in the step the selected span is.
  paintSpan(g, c) {
    const { axis, store } = this.map;
    const { type, time } = store.selection ?? {};
    if (type !== 'span' || !time) return;
    const ends = time.map(share => this.xOf(axis.place(share * axis.plan.step_seconds)));
    const [from, to] = [Math.min(...ends), Math.max(...ends)];
    g.fillStyle = c.ink;
    g.fillRect(from, this.area.bottom, Math.max(1.5, to - from), 3);
  }

  // The effect of a drag from a pixel.
  grip(x) {
    const { axis } = this.map;
    const [from, to] = [this.xOf(axis.from), this.xOf(axis.to)];
    if (Math.abs(x - from) < EDGE) return 'from';
    if (Math.abs(x - to) < EDGE) return 'to';
    return x > from && x < to && to - from < axis.inner - 4 ? 'pan' : 'new';
  }
  cursor(x) {
    return CURSORS[this.grip(x)];
  }

  // Follow the pointer from pointer down to pointer up.
  drag(event, x) {
    const { axis, host } = this.map;
    const grip = this.grip(x);
    const { from, to } = axis;
    const start = this.placeAt(x);
    const least = axis.end / 300;
    host.setPointerCapture(event.pointerId);
    const moves = {
      pan: place => axis.view(from + place - start, to + place - start),
      from: place => axis.view(Math.min(place, to), to),
      to: place => axis.view(from, Math.max(place, from)),
      new: place => {
        if (Math.abs(place - start) > least) axis.view(Math.min(start, place), Math.max(start, place));
      },
    };
    const move = moved => moves[grip](this.placeAt(this.map.at(moved)[0]));
    const end = () => {
      host.removeEventListener('pointermove', move);
      host.removeEventListener('pointerup', end);
      host.removeEventListener('pointercancel', end);
    };
    host.addEventListener('pointermove', move);
    host.addEventListener('pointerup', end);
    host.addEventListener('pointercancel', end);
  }
}
