// Outline a span in a plot with the time axis.
import { within } from '../../plots/box_surface.js';
import { boundsOf } from '../../core/span.js';

const FILL = 0.08; // opacity
const BEYOND = 9; // pixels outside of the plot at which edges that are not in view are drawn

// `yOf(address)`: a pixel; without it the plot has no addresses, and a span of these alone is not in it.
export function paintSpan(g, c, { axis, store }, area, span, yOf = null) {
  if (!span || (!span.time && !yOf)) return;
  const { from, to, low, high } = boundsOf(span, store.plan);
  const clamp = (pixel, least, most) => Math.max(least - BEYOND, Math.min(most + BEYOND, pixel));
  const x = seconds => clamp(Number.isFinite(seconds) ? axis.x(seconds) : seconds, area.left, area.right);
  const y = address => clamp(Number.isFinite(address) ? yOf(address) : -address, area.top, area.bottom);
  const [left, right] = [x(from), x(to)];
  const [top, bottom] = yOf ? [y(high), y(low)] : [area.top - BEYOND, area.bottom + BEYOND];
  within(g, area, () => {
    g.fillStyle = c.ink;
    g.globalAlpha = FILL;
    g.fillRect(left, top, right - left, bottom - top);
    g.globalAlpha = 1;
    // a line of the background's colour on both sides sets it off from boxes of any colour
    for (const [colour, width] of [
      [c.panel, 3.5],
      [c.ink, 1.5],
    ]) {
      g.strokeStyle = colour;
      g.lineWidth = width;
      g.strokeRect(left, top, right - left, bottom - top);
    }
    g.lineWidth = 1;
  });
}
