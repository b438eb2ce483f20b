// Draw one box of the module graph: a header with name, class and ops, and a bar for its memory or time.
import { fitText } from '../../plots/fit_text.js';
import { sharedWay, waysOf } from '../../data/partition_ways.js';
import { ROW } from './module_rows.js';
import { shade } from '../../core/theme.js';
import { bytesText, plural, secondsText } from '../../core/units.js';

const LONGEST = 150; // pixels of a bar for the whole model
const NUMBER = 76; // pixels for the number at the right end
const SMALL = '11px ';

// What a box shows: text, its share of the whole (0..1), and the shares of the kinds.
export function amount(store, measure, part) {
  const { metric } = store;
  const { total } = measure;
  if (metric === 'partition') return split(store, measure, part);
  const { bytes, seconds, kinds } = measure.of(part);
  if (metric === 'time') {
    return { text: secondsText(seconds), share: seconds / (total.seconds || 1), kinds: null };
  }
  const shares = metric === 'kind' ? kinds.map(each => each / (total.bytes || 1)) : null;
  return { text: bytesText(bytes), share: bytes / (total.bytes || 1), kinds: shares };
}

// By partition, a box shows how its tensors are split.
function split(store, measure, part) {
  const ways = waysOf(store);
  const text = sharedWay(ways, measure.graphData, measure.storagesOf(part));
  return { text: text || '–', share: text ? 0.07 : 0, kinds: null, tone: ways.tones.get(text) ?? 0.5 };
}

// A box at `x`, `y` of width `w`; `look`: marked, found, faded, search. Returns the position of its badge.
export function paintBox(g, c, row, { x, y, w, h }, shown, measure, look) {
  g.globalAlpha = look.faded ? 0.38 : 1;
  if (row.part.count > 1) paintSheet(g, c, x, y, w, h);
  g.fillStyle = row.open ? c.sunken : c.panel;
  g.fillRect(x, y, w, h);
  const bar = paintBar(g, c, shown, x, y, w);
  g.strokeStyle = look.marked ? c.ink : look.found ? c.accent : c.strong;
  g.lineWidth = look.marked ? 2 : look.found ? 1.5 : 1;
  if (row.part.own && !look.marked && !look.found) g.setLineDash([2, 2]);
  g.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
  g.setLineDash([]);
  g.lineWidth = 1;
  if (row.canOpen) paintArrow(g, c, row.open, x + 10, y + ROW / 2);
  const badge = paintName(g, c, row, x + 19, y, bar - 6, measure.of(row.part).ops);
  g.fillStyle = c.ink;
  g.textAlign = 'right';
  g.fillText(shown.text, x + w - 8, y + ROW / 2 + 0.5);
  g.textAlign = 'left';
  g.globalAlpha = 1;
  return badge;
}

// A second sheet under a fold.
function paintSheet(g, c, x, y, w, h) {
  g.strokeStyle = c.strong;
  g.strokeRect(x + 2.5, y + 2.5, w, h);
}

// The bar grows to the left of the number; returns its left end.
function paintBar(g, c, { text, share, kinds, tone }, x, y, w) {
  const right = x + w - (tone === undefined ? NUMBER : Math.max(NUMBER, g.measureText(text).width + 14));
  const scale = Math.min(LONGEST, w * 0.34);
  const width = Math.max(0, Math.min(1, share)) * scale;
  if (!kinds) {
    g.fillStyle = shade(c, tone ?? 0.25 + 0.75 * Math.min(1, share * 2.2));
    g.fillRect(right - width, y + 7, width, ROW - 14);
    return right - width;
  }
  let at = right;
  for (let kind = kinds.length - 1; kind >= 0; kind--) {
    at -= kinds[kind] * scale;
    g.fillStyle = c.kind[kind];
    g.fillRect(at, y + 7, kinds[kind] * scale, ROW - 14);
  }
  return at;
}

function paintArrow(g, c, open, x, y) {
  g.fillStyle = c.second;
  g.beginPath();
  if (open) {
    g.moveTo(x - 4, y - 2);
    g.lineTo(x + 4, y - 2);
    g.lineTo(x, y + 3);
  } else {
    g.moveTo(x - 2, y - 4);
    g.lineTo(x + 3, y);
    g.lineTo(x - 2, y + 4);
  }
  g.closePath();
  g.fill();
}

// Name, badge, class and count of ops, as far as there is room before `end`.
function paintName(g, c, row, x, y, end, ops) {
  const middle = y + ROW / 2 + 0.5;
  const { part } = row;
  const badge = badgeText(row);
  g.font = (part.own ? '12px ' : '600 12px ') + c.font;
  const name = fitText(g, part.label, end - x - (badge ? 44 : 0));
  g.fillStyle = part.own ? c.second : c.ink;
  g.fillText(name, x, middle);
  x += g.measureText(name).width + 7;
  g.font = SMALL + c.font;
  let place = null;
  if (badge && x < end) {
    const width = g.measureText(badge).width + 8;
    place = [x, x + width];
    g.strokeStyle = c.strong;
    g.strokeRect(x + 0.5, y + 5.5, width, ROW - 11);
    g.fillStyle = part.count > 1 ? c.ink : c.third;
    g.fillText(badge, x + 4.5, middle);
    x += width + 7;
  }
  g.fillStyle = c.third;
  const kind = part.kind && fitText(g, part.kind, end - x);
  if (kind.length > 1) {
    g.fillText(kind, x, middle);
    x += g.measureText(kind).width + 8;
  }
  const count = ops ? plural(ops, 'op') : '';
  if (count && kind === part.kind && g.measureText(count).width <= end - x) g.fillText(count, x, middle);
  return place;
}

// A fold shows its count; the first module of an unfolded fold offers to fold it again.
function badgeText(row) {
  if (row.part.count > 1) return '×' + row.part.count;
  return row.first && row.foldKey ? 'fold' : '';
}
