// Paint a lane of the streams: its spans by the share of a pixel they cover, names where there is room, the selection
// and hover, and the stalls of compute.
import { ending } from '../../plots/box_labels.js';
import { COMPUTE, LANES, hasOps, inView } from './lanes.js';
import { paintStripes, surfaceOn } from '../../plots/box_surface.js';
import { secondsText } from '../../core/units.js';

const SEAM = 0.6; // pixels left free between spans that are wide enough to be distinguished
const NAMED = 46; // least width in pixels of a span with a name
const LETTERED = 2000; // number of spans in view at which most are narrower than a letter
const FEW = 60; // most spans that are outlined individually
const MARKED = { selected: 500, pointed: 6000 }; // most ops that are marked

export function paintLane(g, c, view, which) {
  const { axis, lanes, density } = view;
  const area = view.area(which);
  paintLaneName(g, c, area, LANES[which]);
  const [full, faint] = hasOps(which) ? [c.phase, c.phaseFaint] : [c.kind, c.kindFaint];
  const colours = [...full, ...faint];
  const surface = surfaceOn(g, { coverage: view.coverage[which], density, area, colours, flat: true });
  const spans = lanes.list[which];
  const perPlace = axis.scale * surface.scale;
  const start = axis.from - surface.dx / perPlace;
  const lit = view.lit(which);
  const [first, end] = inView(spans, axis.from, axis.to);
  for (let i = first; i < end; i++) {
    const left = (spans.from[i] - start) * perPlace;
    const right = (spans.to[i] - start) * perPlace;
    const seam = right - left > 6 * surface.scale ? SEAM * surface.scale : 0;
    surface.boxes.box(left, 0, right - seam, surface.height, spans.shade[i] + (lit(spans.id[i]) ? 0 : full.length));
  }
  surface.finish({ columns: axis.marks().map(([x]) => x), lines: c.grid, ground: c.sunken });
}

function paintLaneName(g, c, { left, top, bottom }, { name, below }) {
  const middle = (top + bottom) / 2;
  g.textAlign = 'right';
  g.fillStyle = c.second;
  g.fillText(name, left - 4, below ? middle - 5 : middle);
  g.fillStyle = c.third;
  if (below) g.fillText(below, left - 4, middle + 7);
  g.textAlign = 'left';
}

// Ops that run again are striped.
export function paintRepeats(g, c, view) {
  const { repeats } = view.lanes;
  const area = view.area(COMPUTE);
  const [first, end] = inView(repeats, view.axis.from, view.axis.to);
  for (let i = first, next; i < end; i = next) {
    // ops one after another are striped as one
    const [x] = view.extent(repeats, i);
    let right = x;
    for (next = i; next < end && view.extent(repeats, next)[0] < right + 1; next++) {
      const [left, width] = view.extent(repeats, next);
      right = left + width;
    }
    paintStripes(g, c, { x, y: area.top, width: right - x, height: area.bottom - area.top }, area);
  }
}

// Stalls: red and hatched in the compute lane, and marked above it, where even short ones are visible.
export function paintStalls(g, c, view) {
  const { stalls } = view.lanes;
  const { top, bottom } = view.area(COMPUTE);
  const [first, end] = inView(stalls, view.axis.from, view.axis.to);
  let painted = -1; // end of the marks drawn so far
  for (let i = first; i < end; i++) {
    const [x, width] = view.extent(stalls, i);
    if (x + width < painted) continue;
    g.fillStyle = c.limit;
    g.fillRect(x, top - 3, Math.max(0.8, width), 2.5);
    painted = x + Math.max(0.8, width);
    if (width <= 2.5) continue;
    g.fillStyle = c.limitSoft;
    g.fillRect(x, top, width, bottom - top);
    g.fillStyle = c.hatch(1.2, c.limit, 6);
    g.fillRect(x, top, width, bottom - top);
    if (width > NAMED) paintStallLabel(g, c, view, stalls.stop[i] - stalls.start[i], x, width);
  }
}

function paintStallLabel(g, c, view, seconds, x, width) {
  const { left, right, top, bottom } = view.area(COMPUTE);
  const [from, to] = [Math.max(x, left), Math.min(x + width, right)];
  const time = secondsText(seconds);
  const text = ['stall ' + time, time].find(each => g.measureText(each).width + 14 < to - from);
  if (!text) return;
  const wide = g.measureText(text).width + 8;
  const middle = (top + bottom) / 2;
  g.fillStyle = c.panel;
  g.fillRect((from + to - wide) / 2, middle - 8, wide, 16);
  g.fillStyle = c.limit;
  g.fillText(text, (from + to - wide) / 2 + 4, middle + 0.5);
}

// The label of a span: what an op computes and in which module, or which storage is copied.
export function paintNames(g, c, view, which) {
  const { axis, plan } = view;
  const { graphData } = plan;
  const spans = view.lanes.list[which];
  const { left, right, top, bottom } = view.area(which);
  const [first, end] = inView(spans, axis.from, axis.to);
  if (end - first > LETTERED) return;
  const lit = view.lit(which);
  const compute = hasOps(which);
  const most = compute && bottom - top > 28 ? 2 : 1;
  for (let i = first; i < end; i++) {
    const [x, width] = view.extent(spans, i);
    if (width < NAMED || !lit(spans.id[i])) continue;
    const at = Math.max(x, left) + 4;
    const room = Math.min(x + width, right) - at - 4;
    const id = spans.id[i];
    const lines = compute ? [graphData.shortTarget(id), graphData.opName(id)] : [graphData.storageName(id)];
    const texts = lines
      .map(line => ending(g, line, room))
      .filter(Boolean)
      .slice(0, most);
    const heights = texts.map((_, k) => (top + bottom) / 2 + (k - (texts.length - 1) / 2) * 13);
    if (compute && plan.isRepeat(spans.slot[i])) {
      // on a background of its own, so that no stripe runs through it
      g.fillStyle = c.phase[spans.shade[i]];
      texts.forEach((text, k) => g.fillRect(at - 2, heights[k] - 7, g.measureText(text).width + 4, 13));
    }
    g.fillStyle = (compute ? c.onPhase : c.onKind)[spans.shade[i]];
    texts.forEach((text, k) => g.fillText(text, at, heights[k]));
  }
}

// Make a thin selection visible: marks below ops, outlines of a few copies.
export function paintFocus(g, c, view, which) {
  const compute = hasOps(which);
  const found = view.spansOf(which, view.focus, compute ? MARKED.selected : FEW);
  const { top, bottom } = view.area(which);
  const spans = view.lanes.list[which];
  g.strokeStyle = c.ink;
  g.lineWidth = 1.5;
  for (const i of found) {
    const [x, width] = view.extent(spans, i);
    g.fillStyle = (compute ? c.phase : c.kind)[spans.shade[i]];
    if (width < 1.5) g.fillRect(x, top, 1.5, bottom - top);
    g.fillStyle = c.ink;
    if (!compute) g.strokeRect(x - 0.5, top - 0.5, Math.max(2, width + 1), bottom - top + 1);
    else if (found.length <= 2 * FEW) g.fillRect(x, bottom, Math.max(1.5, width), 3);
  }
  g.lineWidth = 1;
}

export function paintPointed(g, c, view, which) {
  const found = view.spansOf(which, view.store.hoverFocus, MARKED.pointed);
  const { top, bottom } = view.area(which);
  const spans = view.lanes.list[which];
  g.strokeStyle = g.fillStyle = c.ink;
  g.lineWidth = 1.5;
  for (const i of found) {
    const [x, width] = view.extent(spans, i);
    if (found.length <= FEW) g.strokeRect(x - 1, top - 1, Math.max(2, width + 2), bottom - top + 2);
    else g.fillRect(x, bottom, Math.max(1, width), 3);
  }
  g.lineWidth = 1;
}

// In an empty copy lane, why there are no copies.
export function paintIdle(g, c, view, lane) {
  const { left, right, top, bottom } = view.area(lane);
  const { placeholder, repeat_slot } = view.plan;
  g.fillStyle = c.third;
  g.textAlign = 'center';
  const fits = repeat_slot.length ? 'nothing is moved: ops run again instead' : 'everything fits: nothing is moved';
  const text = placeholder ? 'no plan at this budget: nothing to transfer' : fits;
  g.fillText(text, (left + right) / 2, (top + bottom) / 2);
  g.textAlign = 'left';
}
