// Rows of a name, a bar and an amount.
import { make } from '../core/dom.js';

// `rows`: `[name, share of the longest, text]`; longer bars are cut off. `old` marks the bar of an expected value.
export function bars(element, rows) {
  element.replaceChildren(
    ...rows.map(([name, share, text, old]) => {
      const bar = make('i', { class: old ? 'old' : share > 1 && 'cut' });
      bar.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
      const track = make('span', { class: 'sw-bar-track' }, bar);
      return make(
        'div',
        { class: 'sw-bar' },
        make('span', { text: name, title: name }),
        track,
        make('span', { class: 'sw-bar-value', text }),
      );
    }),
  );
}

// A line through some values, without axes, to show a trend beside the numbers.
export function sparkline(values, label) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const y = value => (high > low ? 22 - ((value - low) / (high - low)) * 20 : 12);
  const x = k => (values.length > 1 ? 1 + (k / (values.length - 1)) * 98 : 50);
  const points = values.map((value, k) => `${x(k).toFixed(2)},${y(value).toFixed(2)}`).join(' ');
  const attributes = {
    viewBox: '0 0 100 24',
    preserveAspectRatio: 'none',
    role: 'img',
    'aria-label': label,
    class: 'sw-spark',
  };
  return drawing(attributes, [points], 1.5);
}

// A small drawing of lines, each the points of a polyline.
export function drawing(attributes, lines, width) {
  const element = (tag, its) => {
    const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(its)) made.setAttribute(name, value);
    return made;
  };
  const svg = element('svg', attributes);
  svg.append(
    ...lines.map(points =>
      element('polyline', {
        points,
        fill: 'none',
        stroke: 'currentColor',
        'stroke-width': width,
        'vector-effect': 'non-scaling-stroke',
      }),
    ),
  );
  return svg;
}
