// Round numbers for axes.

// About `count` multiples of 1, 2 or 5 from `low` to `high`.
export function ticks(low, high, count) {
  if (!(high > low)) return { step: 1, values: [low] };
  const raw = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const times = raw / power;
  const step = (times < 1.5 ? 1 : times < 3.5 ? 2 : times < 7.5 ? 5 : 10) * power;
  const values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-6; k++) values.push(k * step);
  return { step, values };
}

// Number of decimals that distinguishes neighbours.
export const digitsFor = step => Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));
