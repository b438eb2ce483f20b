// Colours from the style sheet, read once per theme, and patterns made from them.
import { KINDS, PHASES } from './kinds.js';

const NAMES = {
  ink: 'ink',
  second: 'ink2',
  third: 'ink3',
  panel: 'panel',
  sunken: 'sunken',
  line: 'line',
  strong: 'line-strong',
  accent: 'accent',
  limit: 'limit',
  limitSoft: 'limit-soft',
  grid: 'grid',
  rampLow: 'ramp0',
  rampHigh: 'ramp1',
  font: 'font',
};
const RAMP = 33;

// Colours by element, because two widgets in a page may have different themes.
const known = new WeakMap();

export function colours(element) {
  const root = element.closest('.sw') || element;
  let found = known.get(root);
  if (!found) known.set(root, (found = read(root)));
  return found;
}

export function forgetColours(element) {
  known.delete(element.closest('.sw') || element);
}

// A colour of the ramp from low (0) to high (1).
export const shade = (c, share) => c.ramp[Math.max(0, Math.min(RAMP - 1, Math.round(share * (RAMP - 1))))];

function read(root) {
  const style = getComputedStyle(root);
  const value = name => style.getPropertyValue('--sw-' + name).trim();
  const c = Object.fromEntries(Object.entries(NAMES).map(([key, name]) => [key, value(name)]));
  c.kind = KINDS.map(kind => value(kind.replace('_', '-')));
  c.kindFaint = c.kind.map(colour => faint(colour));
  c.onKind = KINDS.map(kind => value('on-' + kind.replace('_', '-')));
  c.phase = PHASES.map(phase => value('phase-' + phase));
  c.onPhase = c.phase.map(colour => readable(colour, [c.ink, c.panel]));
  c.phaseFaint = c.phase.map(colour => faint(colour));
  const [low, high] = [channels(c.rampLow), channels(c.rampHigh)];
  c.ramp = Array.from(
    { length: RAMP },
    (_, i) =>
      `rgb(${low
        .slice(0, 3)
        .map((x, k) => Math.round(x + ((high[k] - x) * i) / (RAMP - 1)))
        .join()})`,
  );
  const hatches = new Map();
  c.hatch = (width, colour, size = 6) => {
    const key = [width, colour, size].join();
    if (!hatches.has(key)) hatches.set(key, hatch(width, colour, size));
    return hatches.get(key);
  };
  return c;
}

// Red, green and blue up to 255 and the opacity up to 1, of any CSS colour.
export function channels(colour) {
  const g = document.createElement('canvas').getContext('2d');
  g.fillStyle = colour;
  const told = g.fillStyle; // `#rrggbb`, or `rgba(r, g, b, a)` if it is not opaque
  if (told[0] !== '#') return told.match(/[\d.]+/g).map(Number);
  return [...[1, 3, 5].map(i => parseInt(told.slice(i, i + 2), 16)), 1];
}

const FAINT = 0.2; // opacity of everything that is not selected

function faint(colour) {
  const [red, green, blue] = channels(colour);
  return `rgba(${red}, ${green}, ${blue}, ${FAINT})`;
}

// The colour with the highest contrast to a background, as defined by WCAG 2.
function readable(ground, colours) {
  const contrast = colour => {
    const [dark, light] = [luminance(ground), luminance(colour)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  return colours.reduce((best, colour) => (contrast(colour) > contrast(best) ? colour : best));
}

function luminance(colour) {
  const linear = part => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const [red, green, blue] = channels(colour).map(part => linear(part / 255));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function hatch(width, colour, size) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = size;
  const g = tile.getContext('2d');
  g.strokeStyle = colour;
  g.lineWidth = width;
  g.beginPath();
  for (const shift of [-size, 0, size]) {
    g.moveTo(shift - 1, size + 1);
    g.lineTo(shift + size + 1, -1);
  }
  g.stroke();
  const pattern = g.createPattern(tile, 'repeat');
  Object.assign(pattern, { hatch: { width, colour, size } }); // needed by the SVG export
  return pattern;
}
