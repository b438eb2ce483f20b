// Text in a plot, shortened with an ellipsis if it does not fit.
export function fitText(g, text, room) {
  if (room <= 0) return '';
  if (g.measureText(text).width <= room) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (g.measureText(text.slice(0, middle) + '…').width <= room) low = middle;
    else high = middle - 1;
  }
  return low ? text.slice(0, low).trimEnd() + '…' : '';
}
