// Pictures of a view or of the whole widget: a bitmap at twice the page's size, or SVG with real text.
import { paintPage } from './page_paint.js';
import { ready } from '../plots/plot.js';
import { SvgContext } from './svg_context.js';
import { colours } from '../core/theme.js';

const SCALE = 2;

// The element as SVG text.
export function svgOf(element, title) {
  const { width, height } = element.getBoundingClientRect();
  const c = colours(element);
  const g = new SvgContext(width, height);
  paintPage(g, element, (plot, x, y) => {
    g.save();
    g.beginPath();
    g.rect(x, y, plot.width, plot.height);
    g.clip();
    g.translate(x, y);
    plot.paint(ready(g, c), c);
    g.restore();
  });
  return g.text(c.panel, title);
}

// The element as a canvas.
export function canvasOf(element) {
  const { width, height } = element.getBoundingClientRect();
  const c = colours(element);
  const canvas = blank(width, height);
  const g = canvas.getContext('2d');
  g.scale(SCALE, SCALE);
  g.fillStyle = c.panel;
  g.fillRect(0, 0, width, height);
  paintPage(g, element, (plot, x, y) => g.drawImage(plotCanvas(plot, c), x, y, plot.width, plot.height));
  return canvas;
}

// A plot on a canvas of its own, because some plots set pixels instead of drawing shapes.
function plotCanvas(plot, c) {
  const canvas = blank(plot.width, plot.height);
  const g = canvas.getContext('2d');
  const { density } = plot;
  plot.density = SCALE;
  for (const paint of ['paint', 'paintOver']) {
    g.setTransform(SCALE, 0, 0, SCALE, 0, 0);
    if (plot[paint]) plot[paint](ready(g, c), c);
  }
  plot.density = density;
  return canvas;
}

function blank(width, height) {
  const canvas = document.createElement('canvas');
  canvas.width = Math.round(width * SCALE);
  canvas.height = Math.round(height * SCALE);
  return canvas;
}
