// A curve with more changes than pixels, reduced to the maximum of each column of pixels.
import { countUpTo } from '../../core/sort_times.js';

// `places`: positions where a curve changes, ascending; `heights`: its height from there on. Returns for each of
// `count` columns between `from` and `to` the index of the highest; 0 before the first change.
export function highest(places, heights, from, to, count) {
  const best = new Int32Array(count);
  const perPlace = count / (to - from);
  let next = countUpTo(places, from);
  let now = Math.max(0, next - 1);
  for (let column = 0; column < count; column++) {
    const end = from + (column + 1) / perPlace;
    let top = now;
    for (; next < places.length && places[next] < end; next++) {
      now = next;
      if (heights[next] > heights[top]) top = next;
    }
    best[column] = top;
  }
  return best;
}

// The outline of a column chart from the left to the right: `y(column)` is a pixel. Equal columns are one line.
export function steps(g, left, width, count, y) {
  const step = width / count;
  let before = NaN;
  for (let column = 0; column < count; column++) {
    const now = y(column);
    if (now === before) continue;
    if (column) g.lineTo(left + column * step, before);
    g.lineTo(left + column * step, now);
    before = now;
  }
  g.lineTo(left + width, before);
}
