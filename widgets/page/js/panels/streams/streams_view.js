// The activity of the device over a step: ops, copies out and copies in, each in its lane, and the stalls of compute.
import { Coverage } from '../../plots/coverage.js';
import { paintCursor } from '../../plots/cursor_line.js';
import { paintFocus, paintIdle, paintLane, paintNames, paintPointed, paintRepeats, paintStalls } from './lane_paint.js';
import { COMPUTE, LANES, Lanes, OUT, hasOps, inView, spanAt } from './lanes.js';
import { attachSpanDrag } from '../span/span_drag.js';
import { paintSpan } from '../span/span_paint.js';
import { Plot } from '../../plots/plot.js';
import { copyTip, opTip, stallTip } from './stream_tips.js';
import { within } from '../../plots/box_surface.js';
import { attachTime } from '../../plots/time_gestures.js';
import { hideTip } from '../../plots/tooltip.js';

const TOP = 5;
const AXIS = 18;
const GAP = 14;
const LABEL =
  'Streams: compute, swap out and swap in over time. W and S zoom, A and D pan, arrows step through ops, and with ' +
  'Shift select a span of time.';

export class StreamsView extends Plot {
  constructor(host, { store, axis }) {
    super(host, 'streams', LABEL);
    Object.assign(this, { store, axis, coverage: LANES.map(() => new Coverage()), lanes: null });
    this.stops = [
      axis.on(remapped => {
        if (remapped) this.rebuild();
        this.draw();
      }),
      store.on(['plan', 'budget', 'focus', 'theme'], () => this.draw()),
      store.on(['found'], () => this.drawNext()),
      store.on(['hoverFocus', 'cursor', 'draggedSpan'], () => this.drawOver()),
    ];
    attachSpanDrag(this, { store, axis }, {
      free: x => (x >= axis.gutter ? { time: true, addresses: false } : null),
      click: event => this.click(event),
    });
    attachTime(axis, this, {
      move: event => this.move(event),
      leave: () => this.leave(),
      click: event => this.click(event),
    });
    if (axis.plan) this.rebuild();
  }

  get plan() {
    return this.store.plan;
  }
  get focus() {
    return this.store.focus ?? this.store.found;
  }
  get bottom() {
    return this.height - AXIS;
  }

  layout() {
    this.axis.setWidth(this.width);
  }
  rebuild() {
    if (this.plan) this.lanes = new Lanes(this.plan, this.axis);
  }

  get inside() {
    return { left: this.axis.gutter, right: this.width - this.axis.right, top: 0, bottom: this.bottom };
  }
  // Position of a lane; in a panel of small height all lanes are a little lower.
  area(which) {
    const { shown } = this.lanes;
    const room = this.bottom - TOP;
    const heights = shown.reduce((sum, lane) => sum + LANES[lane].height, 0);
    const part = Math.min(1, (room - shown.length * 4) / heights);
    const gap = Math.max(4, Math.min(GAP, (room - heights * part) / shown.length));
    let top = TOP;
    for (const k of shown.slice(0, shown.indexOf(which))) top += Math.round(LANES[k].height * part + gap);
    const { left, right } = this.inside;
    return { left, right, top, bottom: top + Math.round(LANES[which].height * part) };
  }

  paint(g, c) {
    if (!this.plan || !this.axis.plan) {
      this.say('');
      return;
    }
    const { plan } = this;
    const lanes = this.lanes.shown;
    this.axis.paint(g, c, 2, this.bottom);
    for (const which of lanes) paintLane(g, c, this, which);
    within(g, this.inside, () => {
      paintRepeats(g, c, this);
      paintStalls(g, c, this);
      for (const which of lanes) paintNames(g, c, this, which);
      // a span is outlined itself
      if (this.focus && this.focus.type !== 'span') for (const which of lanes) paintFocus(g, c, this, which);
    });
    if (this.store.selection?.type === 'span') paintSpan(g, c, this, this.inside, this.store.selection);
    if (!plan.in_storage.length && !plan.out_storage.length) paintIdle(g, c, this, OUT);
    this.say(`${plan.placeholder ? plan.summary + ' ' : ''}${plan.streams_summary}`);
  }

  // A predicate: whether an op or a storage of a lane is drawn without fading.
  lit(which) {
    const { focus } = this;
    if (!focus) return () => true;
    const chosen = hasOps(which) ? focus.ops : focus.storages;
    return id => chosen.has(id);
  }

  // The pixel range of a span.
  extent(spans, i) {
    const x = this.axis.xOf(spans.from[i]);
    return [x, this.axis.xOf(spans.to[i]) - x];
  }

  // Spans in view of a lane that belong to the selection or hover; empty if there are more than `most`.
  spansOf(which, what, most) {
    const { axis, lanes } = this;
    const spans = lanes.list[which];
    const chosen = hasOps(which) ? what.ops : what.storages;
    const [first, end] = inView(spans, axis.from, axis.to);
    const found = [];
    for (let i = first; i < end; i++) {
      if (!chosen.has(spans.id[i])) continue;
      if (found.length === most) return [];
      found.push(i);
    }
    return found;
  }

  paintOver(g, c) {
    const { plan, store } = this;
    if (!plan || !this.axis.plan) return;
    paintCursor(g, c, this, { top: 0, bottom: this.bottom, labelled: true });
    paintSpan(g, c, this, this.inside, store.draggedSpan);
    if (!store.hoverFocus) return;
    within(g, this.inside, () => this.lanes.shown.forEach(which => paintPointed(g, c, this, which)));
  }

  // `{lane, span}` or `{stall}` at a pixel; null if there is nothing.
  hit(x, y) {
    const { axis, lanes } = this;
    if (x < axis.gutter || !lanes) return null;
    const which = lanes.shown.find(k => y >= this.area(k).top - 4 && y <= this.area(k).bottom);
    if (which === undefined) return null;
    const [place, slack] = [axis.placeAt(x), 1.5 / axis.scale];
    if (which === COMPUTE) {
      const stall = spanAt(lanes.stalls, place, y < this.area(COMPUTE).top ? slack : 0);
      if (stall >= 0) return { stall };
    }
    const span = spanAt(lanes.list[which], place, slack);
    return span < 0 ? null : { lane: which, span };
  }

  // The target of a hit: the op, the storage, or what a stall delays.
  meant({ stall, lane, span }) {
    if (stall === undefined) return [hasOps(lane) ? 'op' : 'storage', this.lanes.list[lane].id[span]];
    const [op, storage] = [this.plan.stall_op[stall], this.plan.stall_storage[stall]];
    if (op >= 0) return ['op', op];
    return storage >= 0 ? ['storage', storage] : [null];
  }

  move(event) {
    const { plan, store, axis, host } = this;
    if (!plan) return;
    const [x, y] = this.at(event);
    if (x < axis.gutter) {
      this.leave();
      return;
    }
    store.set({ cursor: axis.secondsAt(x) });
    const hit = this.hit(x, y);
    if (!hit) {
      store.point(null);
      hideTip(host);
      return;
    }
    store.point(...this.meant(hit));
    if (hit.stall !== undefined) stallTip(event, host, plan, hit.stall);
    else if (hasOps(hit.lane)) opTip(event, host, plan, this.lanes.list[hit.lane].slot[hit.span]);
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
