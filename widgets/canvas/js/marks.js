// Small marks that several plots draw: an axis of bytes, a label on a coloured ground.
import { ticks, digitsFor } from './ticks.js';
import { bytesUnit } from './units.js';

// Lines and numbers for the bytes `low` to `high` between the pixels `bottom` and `top`; returns the unit's name.
export function bytesAxis(g, c, { low, high, top, bottom, left, right }) {
  const unit = bytesUnit(high);
  const { step, values } = ticks(low / unit.size, high / unit.size, (bottom - top) / 46);
  g.textAlign = 'right';
  for (const value of values) {
    const y = bottom - (value * unit.size - low) / (high - low) * (bottom - top);
    if (y < top - 1 || y > bottom + 1) continue;
    g.fillStyle = c.grid;
    g.fillRect(left, Math.round(y), right - left, 1);
    g.fillStyle = c.third;
    g.fillText(value.toFixed(digitsFor(step)), left - 6, Math.max(top + 6, Math.min(bottom - 4, y)));
  }
  g.textAlign = 'left';
  return unit.name;
}

// A label on a ground of its own; returns its left end.
export function tag(g, c, text, x, y, { ground = c.limit, ink = c.panel, align = 'right' } = {}) {
  const width = g.measureText(text).width + 8;
  const left = align === 'right' ? x - width : align === 'center' ? x - width / 2 : x;
  g.fillStyle = ground;
  g.beginPath();
  g.roundRect(left, y - 8, width, 16, 2);
  g.fill();
  g.fillStyle = ink;
  g.textAlign = 'left';
  g.fillText(text, left + 4, y + 0.5);
  return left;
}
