// The marks in the frame of the memory map: the budget and the peak.
import { tag } from '../../plots/axis_labels.js';
import { bytesText } from '../../core/units.js';

const LINE = 10; // the middle of the line of text above the plot
const GAP = 6;
const BOTH = 400; // least pixels of the plot to show the arena too

// The budget and the moment at which the step holds the most: `y` is the height of that moment in pixels. The budget's
// tag is at the right, or at the left if the peak is in the way; words that then have no room are omitted.
export function paintMarks(g, c, map, y) {
  const { area } = map;
  const line = budgetLine(map);
  paintBeyond(g, c, map, line);
  paintWords(g, c, map, y, line);
}

// The same, drawn over the selection.
export function paintWords(g, c, map, y, line = budgetLine(map)) {
  const { area } = map;
  const peak = peakWords(g, map, y);
  const wide = g.measureText(line.text).width + 8;
  const [right, left] = [area.right - wide, area.left];
  const meets = at => Math.abs(line.y - peak.y) < 18 && at < peak.right + GAP && at + wide + GAP > peak.left;
  const at = peak && meets(right) && (!meets(left) || 2 * peak.x > left + area.right) ? left : right;
  tag(g, c, line.text, at, line.y, { align: 'left' });
  if (peak) paintPeak(g, c, peak, meets(at) || peak.left < left - 4);
}

// A red line with a tag, and a hatch above it if the plan exceeds it. An arrow replaces a line that is out of
// view.
function budgetLine({ area, budget, view }) {
  const { low, high } = view.range;
  const text = 'budget ' + bytesText(budget);
  const y = area.bottom - ((budget - low) / (high - low)) * (area.bottom - area.top);
  if (y < area.top - 6) return { text: text + ' ↑', y: LINE };
  if (y > area.bottom) return { text: text + ' ↓', y: area.bottom - 9 };
  return { text, y: Math.max(LINE, y - 9), line: y };
}

function paintBeyond(g, c, { area, budget, plan }, { line }) {
  const wide = area.right - area.left;
  if (line !== undefined) {
    if (plan.peak_bytes > budget * 1.0001) {
      g.fillStyle = c.hatch(1, c.limit, 8);
      g.globalAlpha = 0.35;
      g.fillRect(area.left, area.top, wide, Math.max(0, line - area.top));
      g.globalAlpha = 1;
    }
    g.fillStyle = c.limit;
    g.fillRect(area.left, Math.round(line) - 1, wide, 1.5);
  }
}

// The mark and its words, on the side that has room; null if that moment is out of view.
function peakWords(g, map, height) {
  const { area, plan, axis } = map;
  const x = axis.x(plan.peak.seconds);
  if (!plan.slots || x < area.left - 1 || x > area.right + 1) return null;
  const inside = height > area.top;
  const text = 'most in use ' + (area.right - area.left > BOTH ? map.inUse : bytesText(plan.peak.bytes));
  const wide = g.measureText(text).width + 14;
  const after = x + wide <= area.right;
  return {
    text,
    x,
    after,
    inside,
    tip: inside ? height : area.top + 1,
    y: inside ? Math.max(LINE, height - 12) : LINE,
    left: after ? x - 4 : x - wide,
    right: after ? x + wide : x + 4,
  };
}

// If the mark is inside the plot and not above it, the words have a background.
function paintPeak(g, c, { text, x, after, inside, tip, y }, bare) {
  g.fillStyle = c.ink;
  g.beginPath();
  g.moveTo(x, tip);
  g.lineTo(x - 4, tip - 7);
  g.lineTo(x + 4, tip - 7);
  g.fill();
  const [ground, ink] = inside ? [c.ink, c.panel] : [c.panel, c.ink];
  if (!bare) tag(g, c, text, after ? x + 6 : x - 6, y, { ground, ink, align: after ? 'left' : 'right' });
}
