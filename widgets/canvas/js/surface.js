// Where boxes are painted: pixel by pixel on a canvas; as shapes on anything else, such as a drawing that is exported.
// Coordinates are in units of `scale` per pixel of the page, from the upper left corner of an area of the plot.

// `area`: `{left, top, right, bottom}` in pixels of the page; `flat`: every box is as high as the area, so that one row
// is enough; boxes then go from 0 to `height`. `coverage`: the picture to paint in, kept from frame to frame.
export function surfaceOn(g, { coverage, density, area, colours, flat = false }) {
  if (!(g.canvas instanceof HTMLCanvasElement)) return shapes(g, area, colours);
  const left = Math.round(area.left * density);
  const top = Math.round(area.top * density);
  const width = Math.max(1, Math.round(area.right * density) - left);
  const height = Math.max(1, Math.round(area.bottom * density) - top);
  coverage.begin(width, height, colours);
  return {
    scale: density, dx: area.left * density - left, dy: area.top * density - top, height: flat ? 1 : height, boxes: coverage,
    // `lines`: where a grid shows through, in pixels of the page; `grid` and `ground`: positions of colours
    finish({ columns = [], rows = [], grid, ground }) {
      const depth = flat ? 1 : height;
      const thick = Math.max(1, Math.round(density));
      for (const x of columns) { const at = Math.round(x * density) - left; coverage.under(at, 0, at + thick, depth, grid); }
      for (const y of rows) { const at = Math.round(y * density) - top; coverage.under(0, at, width, at + thick, grid); }
      coverage.under(0, 0, width, depth, ground);
      if (flat) coverage.repeatRow();
      coverage.put(g, left, top);
    },
  };
}

const INVISIBLE = 0.02; // square pixels

// On what is not made of pixels the grid lies below already.
function shapes(g, area, colours) {
  g.save();
  g.beginPath();
  g.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
  g.clip();
  const box = (left, top, right, bottom, colour) => {
    if ((right - left) * (bottom - top) < INVISIBLE) return;
    g.fillStyle = colours[colour];
    g.fillRect(area.left + left, area.top + top, right - left, bottom - top);
  };
  return { scale: 1, dx: 0, dy: 0, height: area.bottom - area.top, boxes: { box }, finish: () => g.restore() };
}
