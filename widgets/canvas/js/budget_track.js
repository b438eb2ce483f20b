// Under the slider: what is impossible, needs swapping and fits, the marks between them, and above them the cost curve.
import { Plot } from './plot.js';
import { bytesUnit } from './units.js';

const BAR = 31;
const THICK = 6;
const LABELS = 51;
const CURVE = { top: 6, bottom: 26 };

export class BudgetTrack extends Plot {
  constructor(host, { store }) {
    super(host, 'budget', '');
    // the slider over it is what is reached and read
    for (const name of ['tabindex', 'role', 'aria-label', 'aria-describedby']) host.removeAttribute(name);
    host.setAttribute('aria-hidden', 'true');
    this.store = store;
    this.stop = store.on(['machine', 'samples', 'budget_bytes', 'theme'], () => this.draw());
  }

  x(bytes) { return Math.max(0, Math.min(1, bytes / this.store.machine.slider_bytes)) * this.width; }

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
    this.paintCurve(g, c);
    this.paintMarks(g, c);
    if (budget === null) return;
    g.fillStyle = c.limit;
    g.fillRect(this.x(budget) - 0.75, 4, 1.5, BAR + THICK - 4);
  }

  paintCurve(g, c) {
    const points = this.store.samples.points.filter(([, seconds]) => seconds !== null);
    if (points.length < 2) return;
    const low = this.store.machine.ideal_seconds;
    const high = Math.max(low * 1.3, ...points.map(([, seconds]) => seconds));
    const y = seconds => CURVE.bottom - (seconds - low) / (high - low) * (CURVE.bottom - CURVE.top);
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

  // Marks always stand where they belong; a label gives way to the one before it, or goes.
  paintMarks(g, c) {
    let end = -Infinity;
    for (const [bytes, text] of this.marks()) {
      const x = this.x(bytes);
      g.fillStyle = c.second;
      g.fillRect(Math.round(x), BAR - 2, 1, THICK + 4);
      const width = g.measureText(text).width;
      const left = Math.max(end + 8, Math.max(0, Math.min(this.width - width, x - width / 2)));
      if (left + width > this.width + 1 || left > x + width) continue;
      g.fillStyle = c.third;
      g.fillText(text, left, LABELS);
      end = left + width;
    }
  }

  marks() {
    const { least_bytes: least, device_bytes: device, step_peak_bytes: peak, slider_bytes: end } = this.store.machine;
    const unit = bytesUnit(end);
    const text = bytes => `${(bytes / unit.size).toFixed(unit.size === 1 ? 0 : 1)} ${unit.name}`;
    const marks = [[least, 'least ' + text(least)], [peak, 'peak ' + text(peak)]];
    if (device && device <= end) marks.push([device, 'device ' + text(device)]);
    return marks.sort((a, b) => a[0] - b[0]);
  }

  close() { this.stop(); super.close(); }
}
