// A plot is two canvases, data below and an overlay above, so that pointing at something never redraws the data.
// Both are painted at most once per frame, and only while they can be seen.
import { unique } from '../core/unique_ids.js';
import { colours, forgetColours } from '../core/theme.js';

const DATA = 2;
const OVERLAY = 1;

// Subclasses have `paint(g, c)` and may have `paintOver(g, c)` and `layout()`; c are the theme's colours.
export class Plot {
  constructor(host, name, label) {
    Object.assign(this, { host, name, width: 0, height: 0, density: 1, pending: 0, frame: 0, later: 0 });
    host.classList.add('plot');
    host.tabIndex = 0;
    host.setAttribute('role', 'group');
    host.setAttribute('aria-label', label);
    this.data = host.appendChild(document.createElement('canvas'));
    this.overlay = host.appendChild(document.createElement('canvas'));
    for (const canvas of [this.data, this.overlay]) {
      canvas.setAttribute('aria-hidden', 'true');
      canvas.addEventListener('contextrestored', () => {
        forgetColours(host); // the patterns are lost too
        this.draw();
      });
    }
    this.summary = host.appendChild(document.createElement('p'));
    this.summary.className = 'sr';
    this.summary.id = unique(`sw-${name}`);
    host.setAttribute('aria-describedby', this.summary.id);
    host.plot = this; // so that exports and measurements find it
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(host);
  }

  resize() {
    const { width, height } = this.host.getBoundingClientRect();
    const density = window.devicePixelRatio || 1;
    if (!width || !height) return;
    if (width === this.width && height === this.height && density === this.density) {
      if (this.pending) this.ask(this.pending); // it was hidden when the repaint was requested
      return;
    }
    Object.assign(this, { width, height, density });
    for (const canvas of [this.data, this.overlay]) {
      canvas.width = Math.round(width * density);
      canvas.height = Math.round(height * density);
    }
    this.layout?.();
    // at once and not in the next frame: a canvas that was resized is empty
    this.pending = DATA;
    this.flush();
  }

  draw() {
    this.ask(DATA);
  }
  // One frame later than others, which answer a key.
  drawNext() {
    this.later ||= requestAnimationFrame(() => {
      this.later = 0;
      this.draw();
    });
  }
  drawOver() {
    this.ask(OVERLAY);
  }
  ask(level) {
    this.pending = Math.max(this.pending, level);
    this.frame ||= requestAnimationFrame(() => this.flush());
  }

  flush() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.width || this.host.offsetParent === null) return;
    const level = this.pending;
    this.pending = 0;
    const c = colours(this.host);
    if (level === DATA) this.paint(this.context(this.data, c), c);
    this.paintOver?.(this.context(this.overlay, c), c);
  }

  context(canvas, c) {
    const g = canvas.getContext('2d');
    g.setTransform(this.density, 0, 0, this.density, 0, 0);
    g.clearRect(0, 0, this.width, this.height);
    return ready(g, c);
  }

  // Pixels from the plot's upper left corner.
  at(event) {
    const box = this.host.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  // What the picture shows, in a sentence for screen readers.
  say(text) {
    if (this.summary.textContent !== text) this.summary.textContent = text;
  }

  close() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    cancelAnimationFrame(this.later);
  }
}

// A drawing context set up as every plot expects.
export function ready(g, c) {
  g.font = '11px ' + c.font;
  g.textBaseline = 'middle';
  g.textAlign = 'left';
  g.globalAlpha = 1;
  g.lineWidth = 1;
  return g;
}
