// Small marks that several plots draw: an axis of bytes, a label on a coloured background.
import { ticks, digitsFor } from './ticks.js';
import { bytesUnit } from '../core/units.js';

// Ticks of an axis of the bytes `low` to `high` between the pixels `bottom` and `top`: pairs of a pixel and a text.
export function bytesMarks({ low, high, top, bottom }) {
  const { size } = bytesUnit(high);
  const { step, values } = ticks(low / size, high / size, (bottom - top) / 46);
  const yOf = value => bottom - ((value * size - low) / (high - low)) * (bottom - top);
  return values
    .map(value => [Math.round(yOf(value)), value.toFixed(digitsFor(step))])
    .filter(([y]) => y >= top - 1 && y <= bottom + 1);
}

// Draw that axis from `left` to `right`; returns the unit's name.
export function bytesAxis(g, c, axis) {
  const { top, bottom, left, right } = axis;
  g.textAlign = 'right';
  for (const [y, text] of bytesMarks(axis)) {
    g.fillStyle = c.grid;
    g.fillRect(left, y, right - left, 1);
    g.fillStyle = c.third;
    g.fillText(text, left - 6, Math.max(top + 6, Math.min(bottom - 4, y)));
  }
  g.textAlign = 'left';
  return bytesUnit(axis.high).name;
}

// Texts centred at their positions, ordered pairs of a pixel and a text, between two pixels; a text that would touch
// the one before it is omitted. Returns the end of the last text.
export function placeLabels(g, labels, { left, right, y, gap = 8 }) {
  g.textAlign = 'left';
  let end = -Infinity;
  for (const [x, text] of labels) {
    const width = g.measureText(text).width;
    const at = Math.max(left, Math.min(right - width, x - width / 2));
    if (at < end + gap) continue;
    g.fillText(text, at, y);
    end = at + width;
  }
  return end;
}

// A label on a background of its own; returns its left end.
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
