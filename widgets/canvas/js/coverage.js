// A picture of boxes that do not overlap, made pixel by pixel: a pixel takes of each box's colour the share that the box
// covers. So a hundred thousand boxes cost milliseconds, and those under a pixel still add up to what they are.
import { channels } from './theme.js';

const FULL = 255;
const SOFT = [0.125, 0.625, 0.375, 0.875]; // where numbers are rounded up, in turn, so that many small shares stay true

export class Coverage {
  constructor() { Object.assign(this, { width: 0, height: 0, turn: 0 }); }

  // Begin an empty picture of so many device pixels. `colours`: what the other calls name by position.
  begin(width, height, colours) {
    if (width !== this.width || height !== this.height) {
      Object.assign(this, { width, height });
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    } else this.pixels.fill(0);
    this.tables = colours.map(tableOf);
    return this;
  }

  // Edges in device pixels; a colour may have an opacity.
  box(left, top, right, bottom, colour) {
    if (left < 0) left = 0;
    if (top < 0) top = 0;
    if (right > this.width) right = this.width;
    if (bottom > this.height) bottom = this.height;
    if (!(right > left && bottom > top)) return;
    const table = this.tables[colour];
    const last = Math.ceil(bottom) - 1;
    for (let row = top | 0; row <= last; row++) {
      const upper = row > top ? row : top;
      const lower = row + 1 < bottom ? row + 1 : bottom;
      this.row(row * this.width, left, right, lower - upper, table);
    }
  }

  // One row of a box, of which it covers a share.
  row(at, left, right, share, table) {
    const first = left | 0;
    const last = Math.ceil(right) - 1;
    if (first === last) { this.add(at + first, (right - left) * share, table); return; }
    this.add(at + first, (first + 1 - left) * share, table);
    this.add(at + last, (right - last) * share, table);
    const { pixels } = this;
    const from = at + first + 1;
    const to = at + last;
    if (share < 1) for (let i = from; i < to; i++) this.add(i, share, table);
    else if (to - from > 12) pixels.fill(table[table.length - 1], from, to);
    else for (let i = from; i < to; i++) pixels[i] = table[table.length - 1];
  }

  // Colours are multiplied by their share and lie in four bytes of one number. No sum can run over from one byte into
  // the next: no colour adds more to a byte than to the opacity, and that is kept within its own byte.
  add(i, share, table) {
    const turn = this.turn = (this.turn + 1) & 3;
    const { pixels } = this;
    const was = pixels[i];
    const room = FULL - (was >>> 24);
    let level = (share * table.opacity + SOFT[turn]) | 0;
    if (level > room) level = room;
    pixels[i] = was + table[level * 4 + turn];
  }

  // Edges in whole pixels: what nothing covers yet takes this colour.
  under(left, top, right, bottom, colour) {
    const { pixels, width } = this;
    const table = this.tables[colour];
    const share = table.opacity / FULL;
    for (let row = Math.max(0, top); row < Math.min(this.height, bottom); row++) {
      for (let i = row * width + Math.max(0, left), end = row * width + Math.min(width, right); i < end; i++) {
        const was = pixels[i];
        const room = FULL - (was >>> 24);
        if (room) pixels[i] = was + table[((room * share) | 0) * 4];
      }
    }
  }

  // All rows are as the first one.
  repeatRow() {
    const { pixels, width } = this;
    for (let at = width; at < pixels.length; at += width) pixels.copyWithin(at, 0, width);
  }

  put(g, left, top) { g.putImageData(this.image, left, top); }
}

const tables = new Map();

// What each level of coverage, up to the colour's opacity, adds to a pixel: four numbers that differ in how they are
// rounded, and last of all the whole colour.
function tableOf(colour) {
  if (!tables.has(colour)) {
    const [red, green, blue, opacity] = channels(colour);
    const most = Math.round(opacity * FULL);
    const table = new Uint32Array((most + 1) * 4);
    for (let level = 0; level <= most; level++) {
      SOFT.forEach((soft, turn) => {
        const [r, g, b] = [red, green, blue].map(part => Math.min(level, Math.floor(part * level / FULL + soft)));
        table[level * 4 + turn] = ((level << 24) | (b << 16) | (g << 8) | r) >>> 0;
      });
    }
    table.opacity = most;
    tables.set(colour, table);
  }
  return tables.get(colour);
}
