// Paint a part of the page: backgrounds, lines, text, values of controls; plots are painted by their own code.
// It is used for pictures, so hidden elements and elements that only respond to the pointer are omitted.

const LEFT_OUT = '.sr, .news, .sw-tip, .sw-progress, .sw-play, .sw-full, [popover], dialog, script, style';
const THUMB = { width: 16, height: 20, radius: 4, line: 2 };

// `g`: target context, with its origin at the upper left corner of `element`; `plot(plot, x, y)` paints a plot.
export function paintPage(g, element, plot) {
  const origin = element.getBoundingClientRect();
  visit(element, { g, plot, origin, right: origin.right });
}

function visit(element, to) {
  if (element.matches(LEFT_OUT)) return;
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  if (style.display === 'none' || style.visibility === 'hidden' || !box.width || !box.height) return;
  const { g, origin } = to;
  const [x, y] = [box.left - origin.left, box.top - origin.top];
  paintBox(g, style, x, y, box.width, box.height);
  if (element.plot) {
    to.plot(element.plot, x, y);
    return;
  }
  if (element.matches('svg')) {
    paintLines(element, style, to);
    return;
  }
  if (element.matches('input, select')) {
    paintControl(element, style, x, y, to);
    return;
  }
  const clips = style.overflowX !== 'visible';
  if (clips) {
    g.save();
    g.beginPath();
    g.rect(x, y, box.width, box.height);
    g.clip();
  }
  const inside = clips ? { ...to, right: Math.min(to.right, box.right) } : to;
  for (const child of element.childNodes) {
    if (child.nodeType === Node.ELEMENT_NODE) visit(child, inside);
    else if (child.nodeType === Node.TEXT_NODE) paintText(child, style, inside);
  }
  if (clips) g.restore();
}

const seen = colour => !/^(transparent|rgba\(.*, 0\))$/.test(colour);

function paintBox(g, style, x, y, w, h) {
  const radius = Math.min(parseFloat(style.borderTopLeftRadius) || 0, w / 2, h / 2);
  if (seen(style.backgroundColor)) {
    g.fillStyle = style.backgroundColor;
    g.beginPath();
    g.roundRect(x, y, w, h, radius);
    g.fill();
  }
  const sides = ['Top', 'Right', 'Bottom', 'Left'].map(side => ({
    width: style[`border${side}Style`] === 'none' ? 0 : parseFloat(style[`border${side}Width`]),
    colour: style[`border${side}Color`],
    dashed: style[`border${side}Style`] === 'dashed',
  }));
  const [top, right, bottom, left] = sides;
  if (sides.every(side => side.width && side.width === top.width && side.colour === top.colour)) {
    g.strokeStyle = top.colour;
    g.lineWidth = top.width;
    g.setLineDash(top.dashed ? [3, 3] : []);
    g.beginPath();
    g.roundRect(x + top.width / 2, y + top.width / 2, w - top.width, h - top.width, radius);
    if (seen(top.colour)) g.stroke();
    g.setLineDash([]);
    return;
  }
  const edge = ({ width, colour }, ...box) => {
    if (!width || !seen(colour)) return;
    g.fillStyle = colour;
    g.fillRect(...box);
  };
  edge(top, x, y, w, top.width);
  edge(bottom, x, y + h - bottom.width, w, bottom.width);
  edge(left, x, y, left.width, h);
  edge(right, x + w - right.width, y, right.width, h);
}

// Each line of a text at its place in the page; text that overflows its box ends in an ellipsis.
function paintText(node, style, { g, origin, right }) {
  if (!node.data.trim()) return;
  ink(g, style);
  for (const { text, box } of lines(node)) {
    const room = box.width > right - box.left + 0.5 ? right - box.left : Infinity;
    g.fillText(fitted(g, text, room), box.left - origin.left, (box.top + box.bottom) / 2 - origin.top);
  }
}

function ink(g, style) {
  g.font = `${style.fontWeight === '400' ? '' : style.fontWeight + ' '}${style.fontSize} ${style.fontFamily}`;
  g.fillStyle = style.color;
  g.textBaseline = 'middle';
  g.textAlign = 'left';
}

// Adjacent words form a line.
function lines(node) {
  const range = document.createRange();
  const found = [];
  for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const box = range.getBoundingClientRect();
    const last = found[found.length - 1];
    if (!box.width) continue;
    if (last && Math.abs(last.box.top - box.top) < 2) {
      last.text += ' ' + word;
      last.box = { left: last.box.left, top: last.box.top, bottom: last.box.bottom, width: box.right - last.box.left };
    } else found.push({ text: word, box: { left: box.left, top: box.top, bottom: box.bottom, width: box.width } });
  }
  return found;
}

function fitted(g, text, room) {
  if (g.measureText(text).width <= room) return text;
  let length = text.length - 1;
  while (length > 0 && g.measureText(text.slice(0, length) + '…').width > room) length--;
  return text.slice(0, length).trimEnd() + '…';
}

function paintControl(control, style, x, y, { g }) {
  const { width, height } = control.getBoundingClientRect();
  if (control.type === 'range') {
    const share = (control.value - control.min) / (control.max - control.min || 1);
    const left = x + share * (width - THUMB.width);
    g.fillStyle = getComputedStyle(control.closest('.sw')).getPropertyValue('--sw-panel').trim();
    g.strokeStyle = getComputedStyle(control.closest('.sw')).getPropertyValue('--sw-limit').trim();
    g.lineWidth = THUMB.line;
    g.beginPath();
    g.roundRect(left + 1, y + (height - THUMB.height) / 2 + 1, THUMB.width - 2, THUMB.height - 2, THUMB.radius - 1);
    g.fill();
    g.stroke();
    return;
  }
  ink(g, style);
  const list = control.matches('select');
  const text = list ? (control.selectedOptions[0]?.textContent ?? '') : control.value || control.placeholder;
  const left = x + parseFloat(style.paddingLeft) + 2;
  g.fillText(fitted(g, text, x + width - left - (list ? 20 : 4)), left, y + height / 2);
  if (list) g.fillText('▾', x + width - 16, y + height / 2);
}

// Paint the polylines of a small drawing.
function paintLines(svg, style, { g, origin }) {
  g.strokeStyle = style.color;
  g.lineWidth = 1.5;
  for (const line of svg.querySelectorAll('polyline')) {
    const matrix = line.getScreenCTM();
    g.beginPath();
    for (const point of line.points) {
      const { x, y } = new DOMPoint(point.x, point.y).matrixTransform(matrix);
      g.lineTo(x - origin.left, y - origin.top);
    }
    g.stroke();
  }
}
