// Names in boxes that have room for them: the whole name, or as many of its last parts as fit, and below it the size.
import { bytesText } from './units.js';

const MOST = 300;
const PAD = 4;

export function paintBoxLabels(g, c, view, found) {
  const { map, boxes } = view;
  const { area, plan } = map;
  const { scene } = plan;
  for (const i of found.slice(0, MOST)) {
    const { x, y, width, height } = view.rect(i);
    const left = Math.max(x, area.left) + PAD;
    const room = Math.min(x + width, area.right) - left - PAD;
    const top = Math.max(y, area.top);
    const tall = Math.min(y + height, area.bottom) - top;
    if (room < 30 || tall < 13) continue;
    const text = ending(g, scene.storageName(boxes.storage[i]), room);
    if (!text) continue;
    const line = top + Math.min(tall / 2, 12);
    const kind = boxes.kind[i];
    const size = tall > 30 ? bytesText(scene.bytesOf(boxes.storage[i])) : '';
    if (boxes.copied[i]) {
      // on a ground of its own, so that the hatch does not run through it
      g.fillStyle = c.kind[kind];
      g.fillRect(left - 3, line - 7, Math.max(widthOf(g, text), widthOf(g, size)) + 6, size ? 27 : 14);
    }
    g.fillStyle = c.onKind[kind];
    g.fillText(text, left, line);
    if (size) g.fillText(size, left, line + 13);
  }
}

// The longest ending of a name, cut at its dots, that fits.
export function ending(g, name, room) {
  let text = name;
  while (widthOf(g, text) > room) {
    const dot = text.indexOf('.');
    if (dot < 0) return '';
    text = text.slice(dot + 1);
  }
  return text;
}

const widths = new Map();
const KEPT = 5000;

function widthOf(g, text) {
  const key = g.font + text;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > KEPT) widths.clear();
    widths.set(key, (width = g.measureText(text).width));
  }
  return width;
}
