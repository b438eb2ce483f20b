// A drawing context that writes SVG instead of pixels, so that the code that paints a plot also exports it. It has the
// part of CanvasRenderingContext2D that the plots use. Text stays text, hatches become patterns, and consecutive
// rectangles of one colour become one element.
import { escape } from '../core/units.js';

const FONT = /^(?:(\d+|bold|normal)\s+)?([\d.]+)px(?:\/\S+)?\s+(.+)$/;
const ANCHORS = { left: null, start: null, center: 'middle', right: 'end', end: 'end' };
const MIDDLE = 0.35; // of the font size, from the middle of a line of text to its baseline
const KEPT = [
  'fillStyle',
  'strokeStyle',
  'lineWidth',
  'globalAlpha',
  'font',
  'textAlign',
  'textBaseline',
  'lineCap',
  'lineJoin',
];

const number = value => String(Math.round(value * 100) / 100);

export class SvgContext {
  constructor(width, height) {
    Object.assign(this, {
      width,
      height,
      fillStyle: '#000',
      strokeStyle: '#000',
      lineWidth: 1,
      globalAlpha: 1,
      font: '11px sans-serif',
      textAlign: 'left',
      textBaseline: 'alphabetic',
      lineCap: 'butt',
      lineJoin: 'miter',
    });
    this.parts = [];
    this.defs = [];
    this.hatches = new Map();
    this.clips = 0;
    this.stack = [];
    this.at = { x: 0, y: 0, groups: 0, dash: [] };
    this.path = [];
    this.rects = null; // pending rectangles of one paint
    this.ruler = document.createElement('canvas').getContext('2d');
  }

  save() {
    this.stack.push({ at: { ...this.at }, kept: Object.fromEntries(KEPT.map(key => [key, this[key]])) });
  }
  restore() {
    const last = this.stack.pop();
    if (!last) return;
    for (let open = this.at.groups; open > last.at.groups; open--) this.write('</g>');
    this.at = last.at;
    Object.assign(this, last.kept);
  }
  translate(x, y) {
    this.at.x += x;
    this.at.y += y;
  }
  setLineDash(dash) {
    this.at.dash = dash;
  }
  getLineDash() {
    return this.at.dash;
  }

  beginPath() {
    this.path = [];
  }
  moveTo(x, y) {
    this.path.push('M' + this.place(x, y));
  }
  lineTo(x, y) {
    this.path.push((this.path.length ? 'L' : 'M') + this.place(x, y));
  }
  closePath() {
    this.path.push('Z');
  }
  rect(x, y, w, h) {
    this.path.push(this.box(x, y, w, h));
  }
  bezierCurveTo(...xy) {
    this.path.push('C' + [0, 2, 4].map(k => this.place(xy[k], xy[k + 1])).join(' '));
  }
  quadraticCurveTo(...xy) {
    this.path.push('Q' + [0, 2].map(k => this.place(xy[k], xy[k + 1])).join(' '));
  }
  roundRect(x, y, w, h, radius = 0) {
    const r = Math.min(Array.isArray(radius) ? radius[0] : radius, w / 2, h / 2);
    const corner = (dx, dy) => `a${number(r)} ${number(r)} 0 0 1 ${number(dx)} ${number(dy)}`;
    this.path.push(
      `M${this.place(x + r, y)}h${number(w - 2 * r)}${corner(r, r)}v${number(h - 2 * r)}${corner(-r, r)}` +
        `h${number(2 * r - w)}${corner(-r, -r)}v${number(2 * r - h)}${corner(r, -r)}Z`,
    );
  }
  arc(x, y, r, from, to, backwards = false) {
    const full = Math.abs(to - from) >= 2 * Math.PI;
    const ends = full ? [from, from + Math.PI, from + 2 * Math.PI] : [from, to];
    const point = angle => this.place(x + r * Math.cos(angle), y + r * Math.sin(angle));
    const large = !full && Math.abs(to - from) > Math.PI ? 1 : 0;
    this.path.push((this.path.length && !full ? 'L' : 'M') + point(ends[0]));
    const how = `A${number(r)} ${number(r)} 0 ${large} ${backwards ? 0 : 1} `;
    for (const end of ends.slice(1)) this.path.push(how + point(end));
  }

  fill() {
    this.write(`<path d="${this.path.join('')}"${this.paint('fill', this.fillStyle)}/>`);
  }
  stroke() {
    this.write(`<path d="${this.path.join('')}" fill="none"${this.line()}/>`);
  }
  // The clipped part is a group, which ends when the state saved before it is restored.
  clip() {
    const id = `clip${this.clips++}`;
    this.defs.push(`<clipPath id="${id}"><path d="${this.path.join('')}"/></clipPath>`);
    this.write(`<g clip-path="url(#${id})">`);
    this.at.groups += 1;
  }

  fillRect(x, y, w, h) {
    if (!(w && h)) return;
    const paint = this.paint('fill', this.fillStyle);
    if (this.rects?.paint !== paint) {
      this.flush();
      this.rects = { paint, boxes: [] };
    }
    this.rects.boxes.push(this.box(x, y, w, h));
  }
  strokeRect(x, y, w, h) {
    this.write(`<path d="${this.box(x, y, w, h)}" fill="none"${this.line()}/>`);
  }
  clearRect() {}

  fillText(text, x, y) {
    const [, weight, size, family] = FONT.exec(this.font) || [null, null, '11', 'sans-serif'];
    const anchor = ANCHORS[this.textAlign];
    const base = y + (this.textBaseline === 'middle' ? MIDDLE * size : this.textBaseline === 'top' ? 0.8 * size : 0);
    this.write(
      `<text x="${number(x + this.at.x)}" y="${number(base + this.at.y)}" font-size="${size}"` +
        ` font-family="${escape(family)}"${weight && weight !== 'normal' ? ` font-weight="${weight}"` : ''}` +
        `${anchor ? ` text-anchor="${anchor}"` : ''}${this.paint('fill', this.fillStyle)}>${escape(text)}</text>`,
    );
  }
  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  // The whole drawing, on a background of one colour.
  text(ground, title) {
    this.flush();
    const [width, height] = [Math.ceil(this.width), Math.ceil(this.height)];
    const size = `width="${width}" height="${height}"`;
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" ${size} viewBox="0 0 ${width} ${height}"` +
      ' style="font-variant-numeric:tabular-nums;white-space:pre">' +
      `<title>${escape(title)}</title><defs>${this.defs.join('')}</defs>` +
      `<rect width="100%" height="100%" fill="${ground}"/>${this.parts.join('\n')}</svg>`
    );
  }

  place(x, y) {
    return `${number(x + this.at.x)} ${number(y + this.at.y)}`;
  }
  box(x, y, w, h) {
    return `M${this.place(x, y)}h${number(w)}v${number(h)}h${number(-w)}Z`;
  }
  write(part) {
    this.flush();
    this.parts.push(part);
  }
  flush() {
    if (!this.rects) return;
    const { paint, boxes } = this.rects;
    this.rects = null;
    this.parts.push(`<path d="${boxes.join('')}"${paint}/>`);
  }

  line() {
    const { dash } = this.at;
    const dashed = dash.length ? ` stroke-dasharray="${dash.map(number).join(' ')}"` : '';
    const ends = this.lineCap === 'butt' ? '' : ` stroke-linecap="${this.lineCap}"`;
    return `${this.paint('stroke', this.strokeStyle)} stroke-width="${number(this.lineWidth)}"${dashed}${ends}`;
  }

  // A colour or a hatch as an attribute; opacity is separate, because not every reader supports colours with alpha.
  paint(name, style) {
    if (typeof style !== 'string') return ` ${name}="${style?.hatch ? `url(#${this.hatch(style.hatch)})` : 'none'}"`;
    const { colour, opacity } = this.solid(style);
    const alpha = opacity * this.globalAlpha;
    return ` ${name}="${colour}"${alpha < 1 ? ` ${name}-opacity="${number(alpha)}"` : ''}`;
  }
  solid(style) {
    this.ruler.fillStyle = '#000';
    this.ruler.fillStyle = style;
    const found = /^rgba\((\d+), (\d+), (\d+), ([\d.]+)\)$/.exec(this.ruler.fillStyle);
    if (!found) return { colour: this.ruler.fillStyle, opacity: 1 };
    return { colour: `rgb(${found.slice(1, 4).join(',')})`, opacity: Number(found[4]) };
  }
  hatch({ width, colour, size }) {
    const key = [width, colour, size].join();
    if (!this.hatches.has(key)) {
      const id = `hatch${this.hatches.size}`;
      this.hatches.set(key, id);
      const lines = [-size, 0, size].map(shift => `M${shift - 1} ${size + 1}L${shift + size + 1} -1`).join('');
      const { colour: ink, opacity } = this.solid(colour);
      const faint = opacity < 1 ? ` stroke-opacity="${number(opacity)}"` : '';
      this.defs.push(
        `<pattern id="${id}" width="${size}" height="${size}" patternUnits="userSpaceOnUse">` +
          `<path d="${lines}" stroke="${ink}"${faint} stroke-width="${width}"/></pattern>`,
      );
    }
    return this.hatches.get(key);
  }
}
