// Memory over the time of a step: a frame with the axes, the budget and the peak, around one of two views, the
// addresses or the bytes by kind. A minimap of the step is below, and the time axis is shared with the streams.
import { AddressView } from './address_view.js';
import { AddressWindow } from './address_window.js';
import { paintCursor } from '../../plots/cursor_line.js';
import { fitText } from '../../plots/fit_text.js';
import { KindsView } from './kinds_view.js';
import { bytesAxis } from '../../plots/axis_labels.js';
import { paintMarks, paintWords } from './memory_marks.js';
import { Minimap } from './minimap.js';
import { attachSpanDrag } from '../span/span_drag.js';
import { paintSpan } from '../span/span_paint.js';
import { Plot } from '../../plots/plot.js';
import { within } from '../../plots/box_surface.js';
import { attachTime } from '../../plots/time_gestures.js';
import { hideTip } from '../../plots/tooltip.js';
import { bytesText } from '../../core/units.js';

const TOP = 20;
const AXIS = 18;
const ABOVE = 1.045; // range of addresses shown, relative to the highest relevant one
const FAR = 1.6; // a budget this many times the peak is out of view, because the plan would be a strip at the bottom
const LABEL =
  'Memory over time. W and S zoom, A and D pan, plus and minus zoom addresses, arrows move the selection, and with ' +
  'Shift select a span of time or addresses.';

export class MemoryMap extends Plot {
  constructor(host, { root, store, axis }) {
    super(host, 'memory', LABEL);
    Object.assign(this, { root, store, axis, addresses: new AddressWindow(), minimap: new Minimap(this) });
    this.views = { address: new AddressView(this), kind: new KindsView(this) };
    this.stops = [
      axis.on(remapped => {
        if (remapped) this.rebuild();
        this.draw();
      }),
      store.on(['graph'], () => {
        this.addresses.reset();
        this.draw();
      }),
      store.on(['budget_bytes'], () => this.fitAddresses()),
      store.on(['focus'], () => this.reveal()),
      store.on(['plan', 'budget', 'budget_bytes', 'memoryView', 'focus', 'theme'], () => this.draw()),
      store.on(['found'], () => this.drawNext()),
      store.on(['hoverFocus', 'cursor', 'draggedSpan'], () => this.drawOver()),
    ];
    attachSpanDrag(this, { store, axis }, {
      free: (x, y) => this.freeSpan(x, y),
      addressAt: y => this.views.address.addressAt(y),
      click: event => this.click(event),
    });
    attachTime(axis, this, {
      wheel: event => this.wheel(event),
      down: event => this.down(event),
      drag: (_, dy) => this.panAddresses(dy),
      move: event => this.move(event),
      leave: () => this.leave(),
      click: event => this.click(event),
    });
    host.addEventListener('keydown', event => this.key(event));
    if (axis.plan) this.rebuild();
  }

  get plan() {
    return this.store.plan;
  }
  get focus() {
    return this.store.focus ?? this.store.found;
  }
  get view() {
    return this.views[this.store.memoryView];
  }
  get area() {
    const { gutter, right } = this.axis;
    return { left: gutter, right: this.width - right, top: TOP, bottom: this.height - Minimap.height - AXIS };
  }
  get budget() {
    return this.store.budget_bytes ?? this.plan.budget_bytes;
  }
  hideTip() {
    hideTip(this.host);
  }

  layout() {
    this.axis.setWidth(this.width);
  }

  rebuild() {
    if (!this.plan) return;
    this.fitAddresses();
    for (const part of [this.views.address, this.views.kind, this.minimap]) part.rebuild();
  }
  fitAddresses() {
    if (!this.plan) return;
    const peak = Math.max(this.plan.peak_bytes, 1);
    this.addresses.setFull((this.budget > FAR * peak ? peak : Math.max(peak, this.budget)) * ABOVE);
  }
  // A selection made in another panel is scrolled into view if its addresses are not visible.
  reveal() {
    const { plan, focus, addresses } = this;
    if (!plan || focus?.type !== 'storage' || addresses.whole) return;
    const residencies = plan.residencies(focus.id);
    const bytes = plan.graphData.bytesOf(focus.id);
    const lows = [...residencies].map(residency => plan.residency_offset[residency]);
    if (!lows.length || lows.some(low => low < addresses.high && low + bytes > addresses.low)) return;
    addresses.show(lows[0] + (bytes - addresses.span) / 2, lows[0] + (bytes + addresses.span) / 2);
  }

  paint(g, c) {
    if (!this.plan || !this.axis.plan) {
      this.paintNothing(g, c);
      return;
    }
    const { area, view, store } = this;
    this.axis.paint(g, c, area.top, area.bottom);
    const unit = bytesAxis(g, c, { ...view.range, ...area });
    view.paint(g, c);
    g.fillStyle = c.third;
    g.textAlign = 'right';
    g.fillText(unit, area.left - 6, 9);
    g.textAlign = 'left';
    const middle = (area.top + area.bottom) / 2;
    if (!this.plan.residency_storage.length) this.write(g, c, 'this step holds no memory', middle);
    if (store.selection?.type === 'span') this.paintSpan(g, c, store.selection);
    paintMarks(g, c, this, view.peakY);
    this.minimap.paint(g, c);
    this.say(this.spoken());
  }

  paintNothing(g, c) {
    const { budget, graph } = this.store;
    const text = budget?.sentence || budget?.doing || (graph ? 'no plan yet' : '');
    this.write(g, c, text, this.height / 2);
    this.say(text);
  }

  // A line in the middle of an empty plot.
  write(g, c, text, y) {
    g.fillStyle = c.third;
    g.textAlign = 'center';
    g.fillText(fitText(g, text, this.width - 24), this.width / 2, y);
    g.textAlign = 'left';
  }

  // The peak of bytes in use and, if addresses are shown, the arena including fragmentation.
  get inUse() {
    const [used, arena] = [this.plan.peak.bytes, this.plan.peak_bytes].map(bytesText);
    return used === arena || this.store.memoryView !== 'address' ? used : `${used}, arena ${arena}`;
  }

  // The picture in words.
  spoken() {
    const { plan } = this;
    const peak = plan.slots ? ` Most is in use in ${plan.graphData.opName(plan.peak.op)}: ${this.inUse}.` : '';
    return `${plan.placeholder ? plan.summary : plan.memory_summary}${peak} The budget is ${bytesText(this.budget)}.`;
  }

  paintOver(g, c) {
    const { plan, area, store } = this;
    if (!plan || !this.axis.plan) return;
    const labelled = !this.root.querySelector('.sw-streams'); // the streams label the time axis below both
    paintCursor(g, c, this, { top: area.top, bottom: area.bottom, labelled });
    this.paintSpan(g, c, store.draggedSpan);
    if (!store.hoverFocus) return;
    within(g, area, () => this.view.paintOver(g, c, store.hoverFocus));
    paintWords(g, c, this, this.view.peakY);
  }

  paintSpan(g, c, span) {
    const { address } = this.views;
    paintSpan(g, c, this, this.area, span, this.view === address ? bytes => address.y(bytes) : null);
  }
  // What a drag from a pixel selects: at the axes time or addresses, between them both.
  freeSpan(x, y) {
    const { left, bottom } = this.area;
    const addresses = this.store.memoryView === 'address' && y <= bottom;
    return this.inMinimap(y) || (x < left && !addresses) ? null : { time: x >= left, addresses };
  }

  wheel(event) {
    if (!event.shiftKey || this.store.memoryView !== 'address') return false;
    const { top, bottom } = this.area;
    const share = (bottom - this.at(event)[1]) / (bottom - top);
    this.addresses.zoom(Math.exp((event.deltaY || event.deltaX) * 0.002), Math.max(0, Math.min(1, share)));
    this.draw();
    return true;
  }
  panAddresses(pixels) {
    if (this.store.memoryView !== 'address' || this.addresses.whole) return;
    this.addresses.pan(-pixels / (this.area.bottom - this.area.top));
    this.draw();
  }
  key(event) {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    if (event.key === '0') {
      this.addresses.reset();
      this.draw();
      return;
    }
    const factor = { '+': 0.75, '=': 0.75, '-': 4 / 3, '−': 4 / 3 }[event.key];
    if (!factor || this.store.memoryView !== 'address') return;
    this.addresses.zoom(factor);
    this.draw();
    event.preventDefault();
  }

  inMinimap(y) {
    return y >= this.height - Minimap.height + 2;
  }
  down(event) {
    const [x, y] = this.at(event);
    if (!this.inMinimap(y)) return false;
    this.minimap.drag(event, x);
    return true;
  }
  move(event) {
    if (!this.plan) return;
    const [x, y] = this.at(event);
    this.host.style.cursor = this.inMinimap(y) && x >= this.area.left - 6 ? this.minimap.cursor(x) : '';
    if (y > this.area.bottom + AXIS || x < this.area.left) {
      this.leave();
      return;
    }
    this.store.set({ cursor: this.axis.secondsAt(x) });
    this.view.point(event, x, y);
  }
  click(event) {
    if (this.plan) this.view.click(...this.at(event));
  }
  leave() {
    this.store.point(null);
    this.store.set({ cursor: null });
    this.hideTip();
  }

  close() {
    super.close();
    for (const stop of this.stops) stop();
  }
}
