// Sort times without a comparison function: the bits of a non-negative float are ordered as the float is, so a time and
// its position fit into one number, and the browser sorts plain numbers fast.

// Positions that sort `times` (finite, not negative) in ascending order, at single precision.
export function ascending(times) {
  const count = times.length;
  const bits = new Uint32Array(Float32Array.from(times, time => Math.max(0, time) + 0).buffer);
  const packed = new Float64Array(count);
  for (let i = 0; i < count; i++) packed[i] = bits[i] * count + i;
  packed.sort();
  const order = new Uint32Array(count);
  for (let i = 0; i < count; i++) order[i] = packed[i] % count;
  return order;
}

// The count of ascending numbers that are at most `value`.
export function countUpTo(numbers, value) {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
