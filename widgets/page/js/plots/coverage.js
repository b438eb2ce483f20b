// A bitmap of boxes that do not overlap: a pixel takes of each box's colour the share that the box covers, so boxes
// smaller than a pixel still add up correctly. Each row is stored as differences from one pixel to the next, so the
// cost of a box depends on its height only, and a hundred thousand boxes take milliseconds.
import { channels } from '../core/theme.js';

// Red, green, blue and opacity, each multiplied by the share covered, are packed into one float of 53 bits, 13 each.
const FINE = 16; // steps of a level, of which a byte has 255
const UNITS = 255 * FINE;
const PART = 2 ** 13;
const PAIR = 2 ** 26;
const MASK = PART - 1;

export class Coverage {
  constructor() {
    Object.assign(this, { width: 0, height: 0 });
  }

  // Start an empty picture, in device pixels. `colours`: palette that `box` indexes; `depth`: number of rows to paint;
  // all rows below are copies of the last.
  begin(width, height, colours, depth = height) {
    if (width !== this.width || height !== this.height) {
      Object.assign(this, { width, height, depth, stride: width + 2 });
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
      this.changes = new Float64Array(this.stride * depth);
    } else this.changes.fill(0);
    this.tables = colours.map(tableOf);
  }

  // Edges in device pixels; a colour may have an opacity.
  box(left, top, right, bottom, colour) {
    if (left < 0) left = 0;
    if (top < 0) top = 0;
    if (right > this.width) right = this.width;
    if (bottom > this.depth) bottom = this.depth;
    if (!(right > left && bottom > top)) return;
    const { changes, stride } = this;
    const table = this.tables[colour];
    const first = left | 0;
    const last = Math.ceil(right) - 1;
    const begin = first === last ? right - left : first + 1 - left;
    const end = right - last;
    const lowest = Math.ceil(bottom) - 1;
    for (let row = top | 0, at = row * stride; row <= lowest; row++, at += stride) {
      const share = ((row + 1 < bottom ? row + 1 : bottom) - (row > top ? row : top)) * UNITS + 0.5;
      const a = table[(share * begin) | 0];
      changes[at + first] += a;
      if (first === last) {
        changes[at + first + 1] -= a;
        continue;
      }
      const b = table[share | 0];
      const c = table[(share * end) | 0];
      changes[at + first + 1] += b - a;
      changes[at + last] += c - b;
      changes[at + last + 1] -= c;
    }
  }

  // Render the picture on an opaque background with grid lines. `columns`, `rows`: first pixels of lines that are
  // `thick` pixels wide; `lines`, `ground`: colours of the lines and the background.
  finish({ columns, rows, thick, lines, ground }) {
    const plain = groundOf(ground);
    const lined = groundOf(ground, lines);
    const stops = [0];
    for (const x of columns) if (x >= 0 && x < this.width) stops.push(x, Math.min(this.width, x + thick));
    stops.push(this.width);
    const isLine = new Uint8Array(this.height);
    for (const y of rows) if (y >= 0) isLine.fill(1, y, y + thick);
    for (let row = 0; row < this.depth; row++) this.finishRow(row, stops, isLine[row] ? lined : plain, lined);
    const { pixels, width, depth } = this;
    const last = (depth - 1) * width;
    for (let at = last + width; at < pixels.length; at += width) pixels.copyWithin(at, last, last + width);
  }

  // Every second interval between stops is a line.
  finishRow(row, stops, plain, lined) {
    const { changes, pixels, width, stride } = this;
    const shift = row * (stride - width);
    let sum = 0;
    let i = row * width;
    for (let stop = 1; stop < stops.length; stop++) {
      const ground = stop & 1 ? plain : lined;
      const end = row * width + stops[stop];
      let pixel = mixed(sum, ground);
      for (; i < end; i++) {
        const change = changes[i + shift];
        if (change !== 0) {
          sum += change;
          pixel = mixed(sum, ground);
        }
        pixels[i] = pixel;
      }
    }
  }

  put(g, left, top) {
    g.putImageData(this.image, left, top);
  }
}

// The pixel of a sum of colour shares on a background.
function mixed(sum, ground) {
  const upper = Math.floor(sum / PAIR);
  const lower = sum - upper * PAIR;
  const opacity = level(upper >> 13, 255);
  return (
    ground[255 - opacity] +
    (level(upper & MASK, opacity) * 65536 + level((lower >> 13) & MASK, opacity) * 256 + level(lower & MASK, opacity))
  );
}

// No colour exceeds its opacity, so the sum with the background fits in a byte.
function level(units, most) {
  const whole = (units + FINE / 2) >> 4;
  return whole < most ? whole : most;
}

// The contribution of an opaque background, with a transparent colour on it, to a pixel, by the share not covered.
function groundOf(ground, upon = 'transparent') {
  const below = channels(ground);
  const above = channels(upon);
  const [red, green, blue] = [0, 1, 2].map(k => below[k] + (above[k] - below[k]) * above[3]);
  return Uint32Array.from({ length: 256 }, (_, room) => {
    const part = colour => Math.floor((colour * room) / 255);
    return 255 * 2 ** 24 + part(blue) * 65536 + part(green) * 256 + part(red);
  });
}

const tables = new Map();

// The amount that each step of coverage adds to the sum of a pixel.
function tableOf(colour) {
  if (!tables.has(colour)) {
    const [red, green, blue, opacity] = channels(colour);
    const part = (units, of) => Math.round((units * of) / 255);
    tables.set(
      colour,
      Float64Array.from({ length: UNITS + 1 }, (_, step) => {
        const units = Math.round(step * opacity);
        return part(units, red) + part(units, green) * PART + (part(units, blue) + units * PART) * PAIR;
      }),
    );
  }
  return tables.get(colour);
}
