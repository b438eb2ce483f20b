// Sorting times without a comparison in JavaScript: the bits of a float that is not negative ascend as the float does,
// so a time and its position fit into one number, and the browser sorts plain numbers fast.

// Positions that put `times` (finite, not negative) in ascending order, as single floats tell them apart.
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

// How many of ascending numbers are at most `value`.
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
