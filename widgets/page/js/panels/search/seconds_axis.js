// An axis of seconds: lines and numbers, all in one unit.
import { digitsFor, ticks } from '../../plots/ticks.js';

const UNITS = [
  [0.4, 1, 's'],
  [4e-4, 1e-3, 'ms'],
  [0, 1e-6, 'µs'],
];

export function secondsUnit(largest) {
  const [, size, name] = UNITS.find(([least]) => largest >= least);
  return { size, name };
}

// Lines and numbers for the seconds `low` to `high` between the pixels `bottom` and `top`.
export function secondsAxis(g, c, { low, high, top, bottom, left, right }) {
  const { size, name } = secondsUnit(high);
  const { step, values } = ticks(low / size, high / size, (bottom - top) / 40);
  g.textAlign = 'right';
  for (const value of values) {
    const y = bottom - ((value * size - low) / (high - low)) * (bottom - top);
    if (y < top - 1 || y > bottom + 1) continue;
    g.fillStyle = c.grid;
    g.fillRect(left, Math.round(y), right - left, 1);
    g.fillStyle = c.third;
    g.fillText(`${value.toFixed(digitsFor(step))} ${name}`, left - 6, y);
  }
  g.textAlign = 'left';
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
