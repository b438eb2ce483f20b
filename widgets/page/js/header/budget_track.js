// The track of the slider: the impossible, swapping and fitting ranges, the marks between them, and the cost curve.
import { budgetScale } from './budget_scale.js';
import { Plot } from '../plots/plot.js';
import { bytesText } from '../core/units.js';

const BAR = 27;
const THICK = 6;
const LABELS = [46, 58]; // rows
const GAP = 8;
const CURVE = { top: 4, bottom: 22 };

export class BudgetTrack extends Plot {
  constructor(host, { store }) {
    super(host, 'budget', '');
    // the slider above it is the accessible element
    for (const name of ['tabindex', 'role', 'aria-label', 'aria-describedby']) host.removeAttribute(name);
    host.setAttribute('aria-hidden', 'true');
    this.store = store;
    this.stop = store.on(['machine', 'samples', 'budget_bytes', 'theme'], () => this.draw());
  }

  x(bytes) {
    return budgetScale(this.store.machine).place(bytes) * this.width;
  }

  paint(g, c) {
    const { machine, budget_bytes: budget } = this.store;
    if (!machine) return;
    const least = this.x(machine.least_bytes);
    const peak = this.x(machine.step_peak_bytes);
    g.fillStyle = c.hatch(1.2, c.limit, 5);
    g.fillRect(0, BAR, least, THICK);
    g.fillStyle = c.strong;
    g.fillRect(least, BAR, peak - least, THICK);
    g.fillStyle = c.second;
    g.fillRect(peak, BAR, this.width - peak, THICK);
    this.paintBreak(g, c);
    this.paintCurve(g, c);
    this.paintMarks(g, c);
    if (budget === null) return;
    g.fillStyle = c.limit;
    g.fillRect(this.x(budget) - 0.75, 2, 1.5, BAR + THICK - 2);
  }

  // Two strokes across the bar where the scale changes.
  paintBreak(g, c) {
    const { broken } = budgetScale(this.store.machine);
    if (broken === null) return;
    const x = Math.round(broken * this.width);
    g.fillStyle = c.panel;
    g.fillRect(x - 2, BAR - 1, 6, THICK + 2);
    g.strokeStyle = c.second;
    g.lineWidth = 1.5;
    g.beginPath();
    for (const at of [x - 2, x + 4]) {
      g.moveTo(at - 2, BAR + THICK + 2);
      g.lineTo(at + 2, BAR - 2);
    }
    g.stroke();
    g.lineWidth = 1;
  }

  paintCurve(g, c) {
    const points = this.store.samples.points.filter(([, seconds]) => seconds !== null);
    if (points.length < 2) return;
    const low = this.store.machine.ideal_seconds;
    const high = Math.max(low * 1.3, ...points.map(([, seconds]) => seconds));
    const y = seconds => CURVE.bottom - ((seconds - low) / (high - low)) * (CURVE.bottom - CURVE.top);
    const trace = () => points.forEach(([budget, seconds]) => g.lineTo(this.x(budget), y(seconds)));
    g.beginPath();
    g.moveTo(this.x(points[0][0]), CURVE.bottom + 2);
    trace();
    g.lineTo(this.x(points[points.length - 1][0]), CURVE.bottom + 2);
    g.closePath();
    g.fillStyle = c.sunken;
    g.fill();
    g.beginPath();
    trace();
    g.strokeStyle = c.third;
    g.stroke();
  }

  // Every label is at its own mark: one that would touch another moves to the row below, or is omitted if there is no
  // room either. The hatching already shows the least budget, so the other labels take precedence.
  paintMarks(g, c) {
    const rows = LABELS.map(() => []);
    for (const [bytes, text] of this.marks()) {
      const [x, width] = [this.x(bytes), g.measureText(text).width];
      g.fillStyle = c.second;
      g.fillRect(Math.min(Math.round(x), this.width - 1), BAR - 2, 1, THICK + 4);
      const left = Math.max(0, Math.min(x - width / 2, this.width - width));
      const free = row => row.every(other => left + width + GAP <= other.left || other.right + GAP <= left);
      const row = rows.findIndex(free);
      if (row < 0) continue;
      rows[row].push({ left, right: left + width });
      g.fillStyle = c.third;
      g.fillText(text, left, LABELS[row]);
    }
  }

  marks() {
    const { least_bytes: bytes, least, device_bytes: device } = this.store.machine;
    const { step_peak_bytes: peak, slider_bytes: end } = this.store.machine;
    const marks = [[peak, 'step peak ' + bytesText(peak)]];
    if (device && device <= end) marks.push([device, 'device ' + bytesText(device)]);
    return [...marks, [bytes, 'least ' + least]];
  }

  close() {
    this.stop();
    super.close();
  }
}
