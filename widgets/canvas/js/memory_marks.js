// What stands in the frame of the memory map: the budget, the peak, and that there is no plan.
import { fitText } from './fit_text.js';
import { tag } from './marks.js';
import { bytesText } from './units.js';

const LINE = 10; // the middle of the line of text above the plot
const NO_PLAN = 'no plan: the step as captured, nothing swapped';

// A red line with a tag, and a hatch over what is above it if the plan is. An arrow stands for a line that is out of
// view. Returns where the tag is: its left end and its middle.
export function paintBudget(g, c, map) {
  const { area, budget, plan } = map;
  const { low, high } = map.view.range;
  const text = 'budget ' + bytesText(budget);
  const y = area.bottom - ((budget - low) / (high - low)) * (area.bottom - area.top);
  if (y < area.top - 6) return { left: tag(g, c, text + ' ↑', area.right, LINE), y: LINE };
  if (y > area.bottom) return { left: tag(g, c, text + ' ↓', area.right, area.bottom - 9), y: area.bottom - 9 };
  if (plan.peak_bytes > budget * 1.0001) {
    g.fillStyle = c.hatch(1, c.limit, 8);
    g.globalAlpha = 0.35;
    g.fillRect(area.left, area.top, area.right - area.left, Math.max(0, y - area.top));
    g.globalAlpha = 1;
  }
  g.fillStyle = c.limit;
  g.fillRect(area.left, Math.round(y) - 1, area.right - area.left, 1.5);
  const middle = Math.max(LINE, y - 9);
  return { left: tag(g, c, text, area.right, middle), y: middle };
}

// Where the step holds the most, at a height in pixels; the words keep clear of the budget's tag. Where the mark is in
// the plot and not above it, the words have a ground.
export function paintPeak(g, c, map, y, budgetTag) {
  const { area, plan, axis } = map;
  const x = axis.x(plan.peak.seconds);
  if (!plan.slots || x < area.left - 1 || x > area.right + 1) return;
  const inside = y > area.top;
  const tip = inside ? y : area.top + 1;
  g.fillStyle = c.ink;
  g.beginPath();
  g.moveTo(x, tip);
  g.lineTo(x - 4, tip - 7);
  g.lineTo(x + 4, tip - 7);
  g.fill();
  const text = 'peak ' + bytesText(plan.peak.bytes);
  const middle = inside ? Math.max(LINE, y - 12) : LINE;
  const end = Math.abs(budgetTag.y - middle) > 16 ? area.right : budgetTag.left;
  const fits = x + 6 + g.measureText(text).width + 16 <= end;
  const [ground, ink] = inside ? [c.ink, c.panel] : [c.panel, c.ink];
  tag(g, c, text, fits ? x + 6 : Math.min(x - 6, end - 4), middle, { ground, ink, align: fits ? 'left' : 'right' });
}

export function paintStandIn(g, c, { area }) {
  const text = fitText(g, NO_PLAN, area.right - area.left - 24);
  tag(g, c, text, area.left + 6, area.top + 12, { ground: c.panel, ink: c.ink, align: 'left' });
}
