// An axis of seconds: lines and numbers, all in one unit.
import { digitsFor, ticks } from '../../plots/ticks.js';

const GAP = 6; // pixels between a number and the axis
const EDGE = 2; // pixels between a number and the edge of the plot
const UNITS = [
  [0.4, 1, 's'],
  [4e-4, 1e-3, 'ms'],
  [0, 1e-6, 'µs'],
];

export function secondsUnit(largest) {
  const [, size, name] = UNITS.find(([least]) => largest >= least);
  return { size, name };
}

// Pixels that the numbers for the seconds `low` to `high` take beside the axis, at least `least`.
export function secondsMargin(g, axis, least) {
  return Math.max(least, ...secondsMarks(axis).map(([, text]) => Math.ceil(g.measureText(text).width) + GAP + EDGE));
}

// Lines and numbers for the seconds `low` to `high` between the pixels `bottom` and `top`.
export function secondsAxis(g, c, axis) {
  const { left, right } = axis;
  g.textAlign = 'right';
  for (const [y, text] of secondsMarks(axis)) {
    g.fillStyle = c.grid;
    g.fillRect(left, Math.round(y), right - left, 1);
    g.fillStyle = c.third;
    g.fillText(text, left - GAP, y);
  }
  g.textAlign = 'left';
}

// Pairs of a pixel and a text.
function secondsMarks({ low, high, top, bottom }) {
  const { size, name } = secondsUnit(high);
  const { step, values } = ticks(low / size, high / size, (bottom - top) / 40);
  const yOf = value => bottom - ((value * size - low) / (high - low)) * (bottom - top);
  return values
    .map(value => [yOf(value), `${value.toFixed(digitsFor(step))} ${name}`])
    .filter(([y]) => y >= top - 1 && y <= bottom + 1);
}

// Labelled times of a logarithmic axis from `low` to `high` seconds: 1, 2 and 5 times each power of ten.
export function logTicks(low, high) {
  const found = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
    for (const times of [1, 2, 5]) {
      const value = times * power;
      if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
    }
  }
  return found;
}
