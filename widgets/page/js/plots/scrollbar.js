// A thin mark at the right end of a plot for the part of it that is in view.
export function paintScrollbar(g, c, plot, scroll, height, top = 0) {
  const room = plot.height - top;
  if (height <= room + 6) return;
  g.fillStyle = c.strong;
  const length = Math.max(18, (room * room) / height - 2);
  const share = Math.min(1, scroll / Math.max(1, height - room));
  g.fillRect(plot.width - 4, top + 1 + (room - length - 2) * share, 3, length);
}
