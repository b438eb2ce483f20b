// Names in boxes that have room for them: the whole name, or as many of its last parts as fit with some of the module,
// without which they say little, in one line or two; and below it the size.
import { bytesText } from './units.js';

const MOST = 300;
const PAD = 4;
const LINE = 13;
const TWO = 30; // pixels of height in which there is room for two lines

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
    const texts = linesOf(g, scene, boxes.storage[i], room, tall > TWO);
    if (!texts.length) continue;
    const line = top + Math.min(tall / 2, 12);
    const kind = boxes.kind[i];
    if (tall > (texts.length + 1) * LINE + 4) texts.push(bytesText(scene.bytesOf(boxes.storage[i])));
    if (boxes.copied[i]) {
      // on a ground of its own, so that the hatch does not run through it
      g.fillStyle = c.kind[kind];
      const wide = Math.max(...texts.map(text => widthOf(g, text)));
      g.fillRect(left - 3, line - 7, wide + 6, texts.length * LINE + 1);
    }
    g.fillStyle = c.onKind[kind];
    texts.forEach((text, k) => g.fillText(text, left, line + k * LINE));
  }
}

// What is written of a storage: its name as far as it fits, never without any of its module.
function linesOf(g, scene, storage, room, two) {
  const name = scene.storageName(storage);
  const path = scene.module_paths[scene.storage_module[storage]];
  if (!path || !name.startsWith(path)) return [ending(g, name, room)].filter(Boolean);
  const own = name.slice(path.length);
  const text = ending(g, name, room);
  if (text.length > own.length + 1) return [text];
  const [module, tail] = [ending(g, path, room), own.slice(1)];
  return two && module && widthOf(g, tail) <= room ? [module, tail] : [];
}

// The longest ending of a name, cut at its dots, that fits; an ellipsis stands for what is left out.
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
