// The surface that boxes are painted on: a bitmap on a canvas, shapes on other contexts such as an SVG export.
// Coordinates are in units of `scale` per pixel of the page, from the upper left corner of an area of the plot.

const STRIPE = { every: 3, height: 1 }; // pixels

// `area`: `{left, top, right, bottom}` in pixels of the page. `coverage`: the picture to paint in, kept from frame to
// frame. `flat`: every box goes from 0 to `height`, as in a lane. `finish` gets the positions of grid lines,
// in pixels of the page, their colour and that of the background.
export function surfaceOn(g, { coverage, density, area, colours, flat = false }) {
  if (!(g.canvas instanceof HTMLCanvasElement)) return shapes(g, area, colours);
  const left = Math.round(area.left * density);
  const top = Math.round(area.top * density);
  const width = Math.max(1, Math.round(area.right * density) - left);
  const height = Math.max(1, Math.round(area.bottom * density) - top);
  const depth = flat ? 1 : height;
  coverage.begin(width, height, colours, depth);
  return {
    scale: density,
    dx: area.left * density - left,
    dy: area.top * density - top,
    height: depth,
    boxes: coverage,
    finish({ columns = [], rows = [], lines, ground }) {
      coverage.finish({
        columns: columns.map(x => Math.round(x * density) - left),
        rows: rows.map(y => Math.round(y * density) - top),
        thick: Math.max(1, Math.round(density)),
        lines,
        ground,
      });
      coverage.put(g, left, top);
    },
  };
}

// Stripe a box as far as it is inside an area: an op that runs again is in it.
export function paintStripes(g, c, { x, y, width, height }, area) {
  const hidden = Math.max(0, Math.floor((area.top - y) / STRIPE.every));
  const end = Math.min(y + height, area.bottom);
  g.fillStyle = c.panel;
  for (let at = y + (hidden + 0.5) * STRIPE.every; at < end; at += STRIPE.every) {
    g.fillRect(x, Math.round(at), width, STRIPE.height); // not blurred over two rows of pixels
  }
}

// Paint so that nothing shows outside an area.
export function within(g, area, paint) {
  g.save();
  g.beginPath();
  g.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
  g.clip();
  paint();
  g.restore();
}

const INVISIBLE = 0.02; // square pixels
const NARROW = 2.5; // a box narrower than this is merged with a neighbour of the same colour
const TOUCHING = 0.6; // pixels between neighbours

// On a context without pixels the grid is already drawn below. Boxes of one colour are drawn together.
function shapes(g, area, colours) {
  const lists = colours.map(() => []);
  const box = (left, top, right, bottom, colour) => {
    if ((right - left) * (bottom - top) < INVISIBLE) return;
    const list = lists[colour];
    const last = list[list.length - 1];
    const joins =
      last &&
      last.top === top &&
      last.bottom === bottom &&
      last.right - last.left < NARROW &&
      left - last.right < TOUCHING &&
      left >= last.left;
    if (joins) last.right = Math.max(last.right, right);
    else list.push({ left, top, right, bottom });
  };
  const finish = () => {
    within(g, area, () =>
      lists.forEach((list, colour) => {
        g.fillStyle = colours[colour];
        for (const { left, top, right, bottom } of list) {
          g.fillRect(area.left + left, area.top + top, right - left, bottom - top);
        }
      }),
    );
  };
  return { scale: 1, dx: 0, dy: 0, height: area.bottom - area.top, boxes: { box }, finish };
}
