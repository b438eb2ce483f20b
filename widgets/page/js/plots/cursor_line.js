// The time under the pointer, as a line through a plot and, if labelled, on its axis.
import { secondsText } from '../core/units.js';

export function paintCursor(g, c, plot, { top, bottom, labelled }) {
  const { axis, width, store } = plot;
  if (store.cursor === null) return;
  const right = width - axis.right;
  const x = Math.round(axis.x(store.cursor)) + 0.5;
  if (x < axis.gutter || x > right) return;
  g.strokeStyle = c.second;
  g.beginPath();
  g.moveTo(x, top);
  g.lineTo(x, bottom);
  g.stroke();
  if (!labelled) return;
  const text = secondsText(store.cursor);
  const wide = g.measureText(text).width + 8;
  const left = Math.max(axis.gutter, Math.min(right - wide, x - wide / 2));
  g.fillStyle = c.ink;
  g.fillRect(left, bottom + 1, wide, 15);
  g.fillStyle = c.panel;
  g.fillText(text, left + 4, bottom + 9);
}
