// Rows of a name, a bar and an amount.
import { make } from './dom.js';

// `rows`: `[name, share of the longest, text]`; `old` marks the bar of what is only expected.
export function bars(element, rows) {
  element.replaceChildren(...rows.map(([name, share, text, old]) => {
    const bar = make('i', old ? { class: 'old' } : {});
    bar.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
    return make('div', { class: 'sw-bar' }, make('span', { text: name }), make('span', { class: 'sw-bar-track' }, bar),
      make('span', { class: 'sw-bar-value', text }));
  }));
}

// A line through some values, without axes: it shows a tendency beside the numbers.
export function sparkline(values, label) {
  const SVG = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(SVG, 'svg');
  const line = svg.appendChild(document.createElementNS(SVG, 'polyline'));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const y = value => (high > low ? 22 - (value - low) / (high - low) * 20 : 12);
  const x = k => (values.length > 1 ? 1 + k / (values.length - 1) * 98 : 50);
  const set = (element, attributes) => Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  set(svg, { viewBox: '0 0 100 24', preserveAspectRatio: 'none', role: 'img', 'aria-label': label, class: 'sw-spark' });
  set(line, {
    points: values.map((value, k) => `${x(k).toFixed(2)},${y(value).toFixed(2)}`).join(' '), fill: 'none',
    stroke: 'currentColor', 'stroke-width': 1.5, 'vector-effect': 'non-scaling-stroke',
  });
  return svg;
}
