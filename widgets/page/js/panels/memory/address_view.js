// The map of addresses over time: every residency is a box. The selection is highlighted, copies in flight are hatched,
// what an op that runs again makes is striped, and boxes with enough room are labelled.
import { paintBridges } from './away_bridges.js';
import { paintBoxLabels } from '../../plots/box_labels.js';
import { Coverage } from '../../plots/coverage.js';
import { KINDS } from '../../core/kinds.js';
import { bytesMarks } from '../../plots/axis_labels.js';
import { residencyTip } from './memory_tips.js';
import { StayBoxes } from './residency_boxes.js';
import { paintStripes, surfaceOn, within } from '../../plots/box_surface.js';

const SEAM = 0.6; // pixels left free between boxes that are large enough to be distinguished
const LABEL = { width: 58, height: 13 };
const FLIGHT = { width: 5, height: 3 };
const FEW = 60; // most boxes that are outlined individually
const MANY = 6000; // most boxes that are highlighted on hover
const VEILED = 400; // with more boxes than this, they are darkened instead of outlined
const ALONE = 8; // most boxes that are outlined even if they are thin

const outlined = (height, found) => height >= 3 || found.length <= ALONE;

export class AddressView {
  constructor(map) {
    this.map = map;
    this.coverage = new Coverage();
    this.boxes = null;
  }

  // Another plan or another unit of the axis.
  rebuild() {
    const { plan, axis } = this.map;
    this.boxes = new StayBoxes(plan, axis);
  }

  get range() {
    const { low, high } = this.map.addresses;
    return { low, high };
  }

  // Pixels per byte, and the pixel where an address is.
  get scale() {
    const { top, bottom } = this.map.area;
    const { low, high } = this.range;
    return (bottom - top) / (high - low);
  }
  get peakY() {
    return this.map.area.top;
  } // above all addresses
  y(address) {
    return this.map.area.bottom - (address - this.range.low) * this.scale;
  }
  // The nearest address in view.
  addressAt(y) {
    const { low, high } = this.range;
    return Math.max(low, Math.min(high, low + (this.map.area.bottom - y) / this.scale));
  }

  paint(g, c) {
    const { axis, area, density, focus } = this.map;
    const colours = [...c.kind, ...c.kindFaint];
    const surface = surfaceOn(g, { coverage: this.coverage, density, area, colours });
    const seen = this.paintBoxes(surface, focus);
    surface.finish({
      columns: axis.marks().map(([x]) => x),
      rows: bytesMarks({ ...this.range, ...area }).map(([y]) => y),
      lines: c.grid,
      ground: c.panel,
    });
    within(g, area, () => {
      if (focus && focus.type !== 'span') this.paintFocus(g, c, focus); // a span is outlined itself
      for (const i of seen.recomputed) paintStripes(g, c, this.rect(i), area);
      this.paintFlights(g, c, seen.flights);
      paintBoxLabels(g, c, this, seen.labels);
    });
  }

  // Paint all boxes in view; returns those in which more is drawn.
  paintBoxes(surface, focus) {
    const { axis, area } = this.map;
    const { boxes } = this;
    const { from, to, low, high, kind, storage, copied, recomputed } = boxes;
    const { scale: density, dx, dy } = surface;
    const perPlace = axis.scale * density;
    const perByte = this.scale * density;
    const left = axis.from - dx / perPlace;
    const bottom = (area.bottom - area.top) * density + dy;
    const base = this.range.low;
    const seam = SEAM * density;
    const flights = [];
    const labels = [];
    const striped = [];
    for (const i of boxes.between(axis.from, axis.to)) {
      const y0 = bottom - (high[i] - base) * perByte;
      const y1 = bottom - (low[i] - base) * perByte;
      if (y1 < 0 || y0 > bottom) continue;
      const x0 = (from[i] - left) * perPlace;
      const x1 = (to[i] - left) * perPlace;
      const wide = (x1 - x0) / density;
      const tall = (y1 - y0) / density;
      const lit = !focus || focus.storages.has(storage[i]);
      const top = tall > 2 ? y0 + seam : y0;
      surface.boxes.box(x0, top, wide > 3 ? x1 - seam : x1, y1, lit ? kind[i] : kind[i] + KINDS.length);
      if (!lit) continue;
      if (wide > LABEL.width && tall > LABEL.height) labels.push(i);
      if (recomputed[i] && wide > FLIGHT.width && tall > FLIGHT.height) striped.push(i);
      if (copied[i] && wide > FLIGHT.width && tall > FLIGHT.height) flights.push(i);
    }
    return { flights, labels, recomputed: striped };
  }

  // `{x, y, width, height}` of a box in pixels.
  rect(i) {
    const { axis } = this.map;
    const { from, to, low, high } = this.boxes;
    const x = axis.xOf(from[i]);
    const y = this.y(high[i]);
    return { x, y, width: axis.xOf(to[i]) - x, height: (high[i] - low[i]) * this.scale };
  }

  // While a storage is on the link its box is hatched.
  paintFlights(g, c, flights) {
    const { axis } = this.map;
    const { arrive, leave } = this.boxes;
    g.fillStyle = c.hatch(1.4, c.panel);
    for (const i of flights) {
      const { x, y, width, height } = this.rect(i);
      const end = axis.xOf(arrive[i]) - x;
      const begin = axis.xOf(leave[i]);
      if (end > 1.5) g.fillRect(x, y, Math.min(width, end), height);
      if (x + width - begin > 1.5) g.fillRect(Math.max(x, begin), y, x + width - Math.max(x, begin), height);
    }
  }

  // A few selected storages are outlined, even if they are thin, with bridges over their absences.
  paintFocus(g, c, focus) {
    const found = this.boxesOf(focus.storages, FEW);
    if (!found.length) return;
    if (focus.storages.size <= FEW) paintBridges(g, c, this, focus.storages);
    g.strokeStyle = c.ink;
    g.lineWidth = found.length < 20 ? 1.5 : 0.75;
    for (const i of found) {
      const { x, y, width, height } = this.rect(i);
      g.fillStyle = c.kind[this.boxes.kind[i]];
      if (height < 1.5 || width < 1.5) g.fillRect(x, y, Math.max(1.5, width), Math.max(1.5, height));
      if (outlined(height, found)) g.strokeRect(x - 0.5, y - 0.5, Math.max(2, width + 1), Math.max(2.5, height + 1));
    }
    g.lineWidth = 1;
  }

  // Boxes in view of some storages; empty if there are more than `most`.
  boxesOf(storages, most) {
    const { axis } = this.map;
    const { low, high } = this.range;
    const { boxes } = this;
    const found = [];
    for (const i of boxes.between(axis.from, axis.to)) {
      if (!storages.has(boxes.storage[i]) || boxes.high[i] < low || boxes.low[i] > high) continue;
      if (found.length === most) return [];
      found.push(i);
    }
    return found;
  }

  // Hover: outlines; a line where outlines would hide the boxes, and a veil for very many boxes.
  paintOver(g, c, pointed) {
    const found = this.boxesOf(pointed.storages, MANY);
    const veil = found.length > VEILED;
    g.fillStyle = c.ink;
    if (veil) g.globalAlpha = 0.4;
    for (const i of found) {
      const { x, y, width, height } = this.rect(i);
      if (!veil && outlined(height, found)) this.outline(g, c, x, y, width, height);
      else g.fillRect(x, y, Math.max(1, width), Math.max(1, height));
    }
    g.globalAlpha = 1;
    g.lineWidth = 1;
  }

  outline(g, c, x, y, width, height) {
    for (const [colour, line] of [
      [c.panel, 3],
      [c.ink, 1.5],
    ]) {
      g.strokeStyle = colour;
      g.lineWidth = line;
      g.strokeRect(x - 1, y - 1, Math.max(2, width + 2), Math.max(2, height + 2));
    }
  }

  boxAt(x, y) {
    const { axis, area } = this.map;
    if (x < area.left || y < area.top || y > area.bottom) return -1;
    const address = this.range.low + (area.bottom - y) / this.scale;
    return this.boxes.at(axis.placeAt(x), address, 1.5 / axis.scale, 1.2 / this.scale);
  }

  point(event, x, y) {
    const { store, host, plan } = this.map;
    const i = this.boxAt(x, y);
    store.point(i < 0 ? null : 'storage', i < 0 ? 0 : this.boxes.storage[i]);
    residencyTip(event, host, plan, i < 0 ? -1 : this.boxes.residency[i]);
  }

  click(x, y) {
    const { store } = this.map;
    const i = this.boxAt(x, y);
    if (i < 0) store.set({ selection: null });
    else store.select('storage', this.boxes.storage[i]);
  }
}
