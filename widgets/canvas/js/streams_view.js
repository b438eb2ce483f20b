// What the device does over a step: ops, copies out and copies in, each in its lane, and where compute has to wait.
import { ending } from './box_labels.js';
import { Coverage } from './coverage.js';
import { paintCursor } from './cursor_line.js';
import { COMPUTE, IN, LANES, Lanes, OUT, inView, spanAt } from './lanes.js';
import { Plot } from './plot.js';
import { copyTip, opTip, stallTip } from './stream_tips.js';
import { surfaceOn } from './surface.js';
import { attachTime } from './time_gestures.js';
import { hideTip } from './tooltip.js';
import { secondsText } from './units.js';

const TOP = 5;
const AXIS = 18;
const GAP = 14;
const SEAM = 0.6; // pixels left free between spans that are wide enough to be told apart
const NAMED = 46; // pixels that a span is wide if there is room to name it
const FEW = 60; // spans that are outlined one by one
const LABEL = 'Streams: compute, swap out and swap in over time. W and S zoom, A and D pan, arrows step through ops.';

export class StreamsView extends Plot {
  constructor(host, { store, axis }) {
    super(host, 'streams', LABEL);
    Object.assign(this, { store, axis, coverage: LANES.map(() => new Coverage()), lanes: null });
    this.stops = [
      axis.on(remapped => { if (remapped) this.rebuild(); this.draw(); }),
      store.on(['plan', 'budget', 'focus', 'theme'], () => this.draw()),
      store.on(['hoverFocus', 'cursor'], () => this.drawOver()),
    ];
    attachTime(axis, this, {
      move: event => this.move(event), leave: () => this.leave(), click: event => this.click(event),
    });
    if (axis.plan) this.rebuild();
  }

  get plan() { return this.store.plan; }
  get focus() { return this.store.focus; }
  get bottom() { return this.height - AXIS; }

  layout() { this.axis.setWidth(this.width); }
  rebuild() { if (this.plan) this.lanes = new Lanes(this.plan, this.axis); }

  // Where a lane lies; in a low panel all are a little lower.
  area(which) {
    const room = this.bottom - TOP;
    const heights = LANES.reduce((sum, lane) => sum + lane.height, 0);
    const part = Math.min(1, (room - 3 * 4) / heights);
    const gap = Math.max(4, Math.min(GAP, (room - heights * part) / LANES.length));
    let top = TOP;
    for (let k = 0; k < which; k++) top += Math.round(LANES[k].height * part + gap);
    return { left: this.axis.gutter, right: this.width - this.axis.right, top, bottom: top + Math.round(LANES[which].height * part) };
  }

  paint(g, c) {
    if (!this.plan || !this.axis.plan) { this.say(''); return; }
    this.axis.paint(g, c, 2, this.bottom);
    LANES.forEach((lane, which) => this.paintLane(g, c, which));
    const { left, right } = this.area(COMPUTE);
    g.save();
    g.beginPath();
    g.rect(left, 0, right - left, this.bottom);
    g.clip();
    this.paintStalls(g, c);
    LANES.forEach((lane, which) => { this.paintNames(g, c, which); if (this.focus) this.paintFocus(g, c, which); });
    g.restore();
    if (!this.plan.in_storage.length && !this.plan.out_storage.length) this.paintIdle(g, c);
    this.say(`${this.plan.stand_in ? this.plan.summary + ' ' : ''}${this.plan.streams_summary}`);
  }

  paintLane(g, c, which) {
    const { axis, lanes, density } = this;
    const area = this.area(which);
    const middle = (area.top + area.bottom) / 2;
    const { name, below } = LANES[which];
    g.textAlign = 'right';
    g.fillStyle = c.second;
    g.fillText(name, area.left - 6, below ? middle - 5 : middle);
    g.fillStyle = c.third;
    g.fillText(below, area.left - 6, middle + 7);
    g.textAlign = 'left';
    const [full, faint] = which === COMPUTE ? [c.phase, c.phaseFaint] : [c.kind, c.kindFaint];
    const colours = [...full, ...faint];
    const surface = surfaceOn(g, { coverage: this.coverage[which], density, area, colours, flat: true });
    const spans = lanes.list[which];
    const perPlace = axis.scale * surface.scale;
    const start = axis.from - surface.dx / perPlace;
    const lit = this.lit(which);
    const [first, end] = inView(spans, axis.from, axis.to);
    for (let i = first; i < end; i++) {
      const left = (spans.from[i] - start) * perPlace;
      const right = (spans.to[i] - start) * perPlace;
      const seam = right - left > 6 * surface.scale ? SEAM * surface.scale : 0;
      surface.boxes.box(left, 0, right - seam, surface.height, spans.shade[i] + (lit(spans.id[i]) ? 0 : full.length));
    }
    surface.finish({ columns: axis.marks().map(([x]) => x), lines: c.grid, ground: c.sunken });
  }

  // Whether an op or a storage of a lane is not faded.
  lit(which) {
    const { focus } = this;
    if (!focus) return () => true;
    const chosen = which === COMPUTE ? focus.ops : focus.storages;
    return id => chosen.has(id);
  }

  // The pixels of a span.
  extent(spans, i) { const x = this.axis.xOf(spans.from[i]); return [x, this.axis.xOf(spans.to[i]) - x]; }

  paintStalls(g, c) {
    const { stalls } = this.lanes;
    const { top, bottom } = this.area(COMPUTE);
    const [first, end] = inView(stalls, this.axis.from, this.axis.to);
    let painted = -1; // up to where there are marks already
    for (let i = first; i < end; i++) {
      const [x, width] = this.extent(stalls, i);
      if (x + width < painted) continue;
      g.fillStyle = c.limit;
      g.fillRect(x, top - 3, Math.max(0.8, width), 2.5);
      painted = x + Math.max(0.8, width);
      if (width <= 2.5) continue;
      g.fillStyle = c.limitSoft;
      g.fillRect(x, top, width, bottom - top);
      g.fillStyle = c.hatch(1.2, c.limit, 6);
      g.fillRect(x, top, width, bottom - top);
      if (width > NAMED) this.paintStallLabel(g, c, i, x, width);
    }
  }

  paintStallLabel(g, c, i, x, width) {
    const { stalls } = this.lanes;
    const { left, right, top, bottom } = this.area(COMPUTE);
    const [from, to] = [Math.max(x, left), Math.min(x + width, right)];
    const seconds = secondsText(stalls.stop[i] - stalls.start[i]);
    const text = ['stall ' + seconds, seconds].find(each => g.measureText(each).width + 14 < to - from);
    if (!text) return;
    const wide = g.measureText(text).width + 8;
    const middle = (top + bottom) / 2;
    g.fillStyle = c.panel;
    g.fillRect((from + to - wide) / 2, middle - 8, wide, 16);
    g.fillStyle = c.limit;
    g.fillText(text, (from + to - wide) / 2 + 4, middle + 0.5);
  }

  // Names in spans with room: what an op computes and where, which storage is copied.
  paintNames(g, c, which) {
    const { axis, lanes, plan } = this;
    const spans = lanes.list[which];
    const { left, right, top, bottom } = this.area(which);
    const [first, end] = inView(spans, axis.from, axis.to);
    if (end - first > 2000) return; // most of those are narrower than a letter
    const lit = this.lit(which);
    const tall = bottom - top;
    for (let i = first; i < end; i++) {
      const [x, width] = this.extent(spans, i);
      if (width < NAMED || !lit(spans.id[i])) continue;
      const at = Math.max(x, left) + 4;
      const room = Math.min(x + width, right) - at - 4;
      const lines = which === COMPUTE ? [plan.scene.shortTarget(spans.id[i]), plan.scene.opName(spans.id[i])]
        : [plan.scene.storageName(spans.id[i])];
      const texts = lines.map(line => ending(g, line, room)).filter(Boolean).slice(0, tall > 28 ? 2 : 1);
      g.fillStyle = (which === COMPUTE ? c.onPhase : c.onKind)[spans.shade[i]];
      texts.forEach((text, k) => g.fillText(text, at, (top + bottom) / 2 + (k - (texts.length - 1) / 2) * 13));
    }
  }

  // What is selected stays visible where it is thin: marks below many ops, outlines of few copies.
  paintFocus(g, c, which) {
    const found = this.spansOf(which, this.focus, which === COMPUTE ? 500 : FEW);
    const { top, bottom } = this.area(which);
    const full = which === COMPUTE ? c.phase : c.kind;
    const spans = this.lanes.list[which];
    g.strokeStyle = c.ink;
    g.lineWidth = 1.5;
    for (const i of found) {
      const [x, width] = this.extent(spans, i);
      g.fillStyle = full[spans.shade[i]];
      if (width < 1.5) g.fillRect(x, top, 1.5, bottom - top);
      if (which !== COMPUTE) g.strokeRect(x - 0.5, top - 0.5, Math.max(2, width + 1), bottom - top + 1);
      else if (found.length <= 120) { g.fillStyle = c.ink; g.fillRect(x, bottom, Math.max(1.5, width), 3); }
    }
    g.lineWidth = 1;
  }

  // Spans in view of a lane that belong to what is selected or pointed at; none if there are more than `most`.
  spansOf(which, what, most) {
    const { axis, lanes } = this;
    const spans = lanes.list[which];
    const chosen = which === COMPUTE ? what.ops : what.storages;
    const [first, end] = inView(spans, axis.from, axis.to);
    const found = [];
    for (let i = first; i < end; i++) {
      if (!chosen.has(spans.id[i])) continue;
      if (found.length === most) return [];
      found.push(i);
    }
    return found;
  }

  paintIdle(g, c) {
    const { left, right } = this.area(OUT);
    const text = this.plan.stand_in ? 'no plan at this budget: nothing to transfer' : 'everything fits: nothing is moved';
    g.fillStyle = c.third;
    g.textAlign = 'center';
    g.fillText(text, (left + right) / 2, (this.area(OUT).top + this.area(IN).bottom) / 2);
    g.textAlign = 'left';
  }

  paintOver(g, c) {
    const { plan, store } = this;
    if (!plan || !this.axis.plan) return;
    paintCursor(g, c, this, { top: 0, bottom: this.bottom, labelled: true });
    if (!store.hoverFocus) return;
    const { left, right } = this.area(COMPUTE);
    g.save();
    g.beginPath();
    g.rect(left, 0, right - left, this.height);
    g.clip();
    LANES.forEach((lane, which) => this.paintPointed(g, c, which, store.hoverFocus));
    g.restore();
  }

  paintPointed(g, c, which, pointed) {
    const found = this.spansOf(which, pointed, 6000);
    const spans = this.lanes.list[which];
    const { top, bottom } = this.area(which);
    g.strokeStyle = g.fillStyle = c.ink;
    g.lineWidth = 1.5;
    for (const i of found) {
      const [x, width] = this.extent(spans, i);
      if (found.length <= FEW) g.strokeRect(x - 1, top - 1, Math.max(2, width + 2), bottom - top + 2);
      else g.fillRect(x, bottom, Math.max(1, width), 3);
    }
    g.lineWidth = 1;
  }

  // `{lane, span}` or `{stall}` at a pixel; null where nothing is.
  hit(x, y) {
    const { axis, lanes } = this;
    if (x < axis.gutter || !lanes) return null;
    const which = LANES.findIndex((_, k) => { const { top, bottom } = this.area(k); return y >= top - 4 && y <= bottom; });
    if (which < 0) return null;
    const [place, slack] = [axis.placeAt(x), 1.5 / axis.scale];
    if (which === COMPUTE) {
      const stall = spanAt(lanes.stalls, place, y < this.area(COMPUTE).top ? slack : 0);
      if (stall >= 0) return { stall };
    }
    const span = spanAt(lanes.list[which], place, slack);
    return span < 0 ? null : { lane: which, span };
  }

  // What a hit stands for: the op, the storage, or what a stall delays.
  meant({ stall, lane, span }) {
    if (stall === undefined) return [lane === COMPUTE ? 'op' : 'storage', this.lanes.list[lane].id[span]];
    const op = this.plan.stall_op[stall];
    return op >= 0 ? ['op', op] : this.plan.stall_storage[stall] >= 0 ? ['storage', this.plan.stall_storage[stall]] : [null];
  }

  move(event) {
    const { plan, store, axis, host } = this;
    if (!plan) return;
    const [x, y] = this.at(event);
    if (x < axis.gutter) { this.leave(); return; }
    store.set({ cursor: axis.secondsAt(x) });
    const hit = this.hit(x, y);
    if (!hit) { store.point(null); hideTip(host); return; }
    store.point(...this.meant(hit));
    if (hit.stall !== undefined) stallTip(event, host, plan, hit.stall);
    else if (hit.lane === COMPUTE) opTip(event, host, plan, plan.order[hit.span]);
    else copyTip(event, host, plan, hit.lane === OUT, hit.span);
  }
  leave() {
    this.store.point(null);
    this.store.set({ cursor: null });
    hideTip(this.host);
  }
  click(event) {
    if (!this.plan) return;
    const hit = this.hit(...this.at(event));
    const [type, id] = hit ? this.meant(hit) : [null];
    if (type === null) this.store.set({ selection: null });
    else this.store.select(type, id);
  }

  close() {
    super.close();
    for (const stop of this.stops) stop();
  }
}
