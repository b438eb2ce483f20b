// Under the slider: what is impossible, needs swapping and fits, the marks between them, and above them the cost curve.
import { budgetScale } from './budget_scale.js';
import { Plot } from './plot.js';
import { bytesText } from './units.js';

const BAR = 31;
const THICK = 6;
const LABELS = 51;
const GAP = 8;
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
    g.fillRect(this.x(budget) - 0.75, 4, 1.5, BAR + THICK - 4);
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

  // Marks stand where they belong; their labels give way to each other, and where there is no room the middle one goes.
  paintMarks(g, c) {
    g.fillStyle = c.second;
    let labels = this.marks().map(([bytes, text]) => {
      const [x, width] = [this.x(bytes), g.measureText(text).width];
      g.fillRect(Math.round(x), BAR - 2, 1, THICK + 4);
      return { text, width, left: Math.max(0, x - width / 2) };
    });
    const needed = labels.reduce((sum, { width }) => sum + width + GAP, 0);
    if (needed > this.width) labels = labels.filter((_, k) => k === 0 || k === labels.length - 1);
    for (let k = 1; k < labels.length; k++) {
      labels[k].left = Math.max(labels[k].left, labels[k - 1].left + labels[k - 1].width + GAP);
    }
    let end = this.width + GAP;
    g.fillStyle = c.third;
    for (const label of labels.reverse()) {
      label.left = Math.min(label.left, end - GAP - label.width);
      g.fillText(label.text, label.left, LABELS);
      end = label.left;
    }
  }

  marks() {
    const { least_bytes: least, device_bytes: device, step_peak_bytes: peak, slider_bytes: end } = this.store.machine;
    const marks = [
      [least, 'least ' + bytesText(least)],
      [peak, 'step peak ' + bytesText(peak)],
    ];
    if (device && device <= end) marks.push([device, 'device ' + bytesText(device)]);
    return marks.sort((a, b) => a[0] - b[0]);
  }

  close() {
    this.stop();
    super.close();
  }
}
