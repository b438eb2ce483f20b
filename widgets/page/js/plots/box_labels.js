// Names in boxes that have room for them, in one or two lines: the whole name, or as many of its last parts as fit
// together with a part of the module; and below it the size.
import { bytesText } from '../core/units.js';

const MOST = 300;
const PAD = 4;
const LINE = 13;
const TWO = 30; // least pixels of height for two lines

export function paintBoxLabels(g, c, view, found) {
  const { map, boxes } = view;
  const { area, plan } = map;
  const { graphData } = plan;
  for (const i of found.slice(0, MOST)) {
    const { x, y, width, height } = view.rect(i);
    const left = Math.max(x, area.left) + PAD;
    const room = Math.min(x + width, area.right) - left - PAD;
    const top = Math.max(y, area.top);
    const tall = Math.min(y + height, area.bottom) - top;
    if (room < 30 || tall < 13) continue;
    const texts = linesOf(g, graphData, boxes.storage[i], room, tall > TWO);
    if (!texts.length) continue;
    const line = top + Math.min(tall / 2, 12);
    const kind = boxes.kind[i];
    if (tall > (texts.length + 1) * LINE + 4) texts.push(bytesText(graphData.bytesOf(boxes.storage[i])));
    if (boxes.copied[i] || boxes.recomputed[i]) {
      // on a background of its own, so that no hatch or stripe runs through it
      g.fillStyle = c.kind[kind];
      const wide = Math.max(...texts.map(text => widthOf(g, text)));
      g.fillRect(left - 3, line - 7, wide + 6, texts.length * LINE + 1);
    }
    g.fillStyle = c.onKind[kind];
    texts.forEach((text, k) => g.fillText(text, left, line + k * LINE));
  }
}

// The label of a storage: its name as far as it fits, never without a part of its module.
function linesOf(g, graphData, storage, room, two) {
  const name = graphData.storageName(storage);
  const path = graphData.module_paths[graphData.storage_module[storage]];
  if (!path || !name.startsWith(path)) return [ending(g, name, room)].filter(Boolean);
  const own = name.slice(path.length);
  const text = ending(g, name, room);
  if (text.length > own.length + 1) return [text];
  const [module, tail] = [ending(g, path, room), own.slice(1)];
  return two && module && widthOf(g, tail) <= room ? [module, tail] : [];
}

// The longest ending of a name, cut at its dots, that fits; an ellipsis replaces the omitted part.
export function ending(g, name, room) {
  let [text, from] = [name, 0];
  while (widthOf(g, text) > room) {
    from = name.indexOf('.', from) + 1;
    if (!from) return '';
    text = '…' + name.slice(from);
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
