// The blocks of a tensor as rectangles with the numbers of the workers that have them.
import { Plot } from '../../plots/plot.js';
import { hideTip, showTip } from '../../plots/tooltip.js';
import { shade } from '../../core/theme.js';
import { countText, plural } from '../../core/units.js';

const [SIDE, TOP, BOTTOM] = [46, 22, 14];
const LINE = 15;
const SMALLEST = 11; // pixels of a block that has room for a number

export class BlocksPlot extends Plot {
  constructor(host, store) {
    super(host, 'blocks', 'Blocks of the selected tensor on the workers');
    Object.assign(this, { store, rectangles: [] });
    this.stops = [store.on(['blocks', 'theme'], () => this.draw()), store.on(['worker'], () => this.drawOver())];
    host.addEventListener('pointermove', event => this.point(event));
    host.addEventListener('pointerleave', () => this.point(null));
  }

  paint(g, c) {
    const { blocks } = this.store;
    this.rectangles = [];
    if (!blocks) return;
    const lines = blocks.ways.length;
    const room = [this.width - 2 * SIDE, this.height - TOP - BOTTOM - lines * LINE - 10];
    const [rows, columns] = blocks.sizes;
    const [width, height] = fitted(rows, columns, room);
    const [left, top] = [(this.width - width) / 2, TOP];
    this.names(g, c, blocks, { left, top, width, height });
    for (const [first, last, from, to, workers] of blocks.blocks) {
      const rectangle = {
        x: left + (from / columns) * width, y: top + (first / rows) * height,
        w: ((to - from) / columns) * width, h: ((last - first) / rows) * height,
        first, last, from, to, workers,
      }; // prettier-ignore
      this.rectangles.push(rectangle);
      this.block(g, c, rectangle, blocks.workers);
    }
    g.fillStyle = c.second;
    g.textAlign = 'center';
    blocks.ways.forEach((way, level) => {
      g.fillText(`level ${level + 1} ${way}`, this.width / 2, top + height + BOTTOM + 10 + level * LINE);
    });
    g.textAlign = 'left';
    this.say(`${blocks.name}. ${blocks.summary}`);
  }

  // The dimensions and their sizes, beside the picture.
  names(g, c, { axes, whole, sizes }, { left, top, width, height }) {
    g.fillStyle = c.third;
    g.textAlign = 'center';
    const name = k => {
      if (axes[k] < 0) return '';
      const size = sizes[k] < whole[k] ? `${countText(sizes[k])} of ${countText(whole[k])}` : countText(whole[k]);
      return `dim ${axes[k]}: ${size}`;
    };
    g.fillText(name(1), left + width / 2, top - 10);
    g.save();
    g.translate(left - 10, top + height / 2);
    g.rotate(-Math.PI / 2);
    g.fillText(name(0), 0, 0);
    g.restore();
    g.textAlign = 'left';
  }

  block(g, c, { x, y, w, h, workers }, all) {
    const share = workers.length < all ? 0.12 + (0.62 * workers[0]) / Math.max(1, all - 1) : 0.12;
    g.fillStyle = shade(c, share);
    g.fillRect(x + 0.5, y + 0.5, Math.max(0.5, w - 1), Math.max(0.5, h - 1));
    const text = numbers(workers);
    if (h < SMALLEST || w < g.measureText(text).width + 4) return;
    g.fillStyle = share > 0.45 ? c.panel : c.ink;
    g.textAlign = 'center';
    g.fillText(text, x + w / 2, y + h / 2 + 0.5);
    g.textAlign = 'left';
  }

  paintOver(g, c) {
    const { worker } = this.store;
    if (!worker) return;
    g.strokeStyle = c.ink;
    g.lineWidth = 2;
    for (const { x, y, w, h, workers } of this.rectangles) {
      if (workers.some(each => worker.includes(each)))
        g.strokeRect(x + 1, y + 1, Math.max(1, w - 2), Math.max(1, h - 2));
    }
  }

  point(event) {
    const [x, y] = event ? this.at(event) : [-1, -1];
    const hit = this.rectangles.find(each => x >= each.x && x < each.x + each.w && y >= each.y && y < each.y + each.h);
    this.store.set({ worker: hit?.workers ?? null });
    if (!hit) {
      hideTip(this.host);
      return;
    }
    const { axes, workers } = this.store.blocks;
    const range = (k, from, to) =>
      axes[k] < 0 ? [] : [[`dim ${axes[k]}`, `${countText(from)} to ${countText(to - 1)}`]];
    const who = hit.workers.length === workers ? `all ${workers} workers` : `${plural(hit.workers.length, 'worker')}`;
    const rows = [
      ...range(0, hit.first, hit.last),
      ...range(1, hit.from, hit.to),
      ['on', `${who}: ${numbers(hit.workers)}`],
    ];
    showTip(event, this.host, this.store.blocks.name, rows);
  }

  close() {
    super.close();
    for (const stop of this.stops) stop();
  }
}

// Nearly the shape of the tensor, but never a sliver.
function fitted(rows, columns, [width, height]) {
  const ratio = Math.max(0.4, Math.min(2.5, columns / rows));
  const w = Math.max(20, Math.min(width, height * ratio));
  return [w, Math.max(20, Math.min(height, w / ratio))];
}

// `3`, `0-3`, `0, 2, 5`: runs of workers by their ends.
export function numbers(workers) {
  const runs = [];
  for (const worker of workers) {
    const last = runs.at(-1);
    if (last && worker === last[1] + 1) last[1] = worker;
    else runs.push([worker, worker]);
  }
  return runs
    .map(([from, to]) => (from === to ? `${from}` : to === from + 1 ? `${from}, ${to}` : `${from}–${to}`))
    .join(', ');
}
