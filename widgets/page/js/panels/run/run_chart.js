// Memory during a run: predicted, dashed; measured, solid; and their difference in a strip below. On a GPU, thin lines
// say what PyTorch's allocator holds and what is in use on the whole GPU, where that is not far above the budget.
import { bytesAxis, tag } from '../../plots/axis_labels.js';
import { Plot } from '../../plots/plot.js';
import { runColumns } from './pixel_columns.js';
import { hideTip, showTip } from '../../plots/tooltip.js';
import { bytesText, bytesUnit, secondsText } from '../../core/units.js';

const LEFT = 56;
const RIGHT = 12;
const TOP = 16;
const STRIP = 34;
const BOTTOM = 18;
const SPACE = 22; // between the curves and the strip
const FAR = 2.5; // times the rest: a line up there would leave no room for it
const LABEL = 'Memory during the run, predicted and measured. Left and right move through it.';

export class RunChart extends Plot {
  constructor(host, { store }) {
    super(host, 'run', LABEL);
    this.store = store;
    this.mark = -1;
    this.stop = store.on(['run', 'theme'], () => this.draw());
    host.addEventListener('pointermove', event => this.point(Math.floor(this.at(event)[0] - LEFT), event));
    host.addEventListener('pointerleave', () => this.point(-1));
    host.addEventListener('blur', () => this.point(-1));
    host.addEventListener('keydown', event => this.key(event));
  }

  paint(g, c) {
    const { run } = this.store;
    this.shown = null;
    if (!run?.seconds) return;
    const [left, right, top] = [LEFT, this.width - RIGHT, TOP];
    const bottom = this.height - BOTTOM - STRIP - SPACE;
    const columns = runColumns(run, right - left);
    const limit = run.budget_bytes ?? 0;
    const peaks = [run.peak_bytes ?? 0, run.predicted_peak_bytes ?? 0, greatest(columns.measured)];
    const most = Math.max(limit, ...peaks, 1);
    const beside = [columns.allocator, columns.gpu].filter(line => greatest(line) <= FAR * most);
    const high = 1.1 * Math.max(most, ...beside.map(greatest));
    const y = bytes => bottom - (bytes / high) * (bottom - top);
    this.shown = { ...columns, left, right, top, bottom, y };
    g.fillStyle = c.third;
    g.textAlign = 'right';
    const unit = bytesAxis(g, c, { low: 0, high, top, bottom, left, right });
    g.textAlign = 'right';
    g.fillText(unit, left - 6, 7);
    g.textAlign = 'left';
    this.paintSteps(g, c, columns);
    for (const line of beside) trace(g, line, left, y, c.third, 1, []);
    trace(g, columns.measured, left, y, c.accent, 2.2, []);
    trace(g, columns.predicted, left, y, c.ink, 1, [4, 3]);
    if (limit) {
      g.fillStyle = c.limit;
      g.fillRect(left, Math.round(y(limit)) - 1, right - left, 1.5);
      tag(g, c, 'budget ' + bytesText(limit), right, Math.max(9, y(limit) - 9));
    }
    this.paintStrip(g, c, columns);
    if (run.state === 'running') this.paintNow(g, c, columns);
    this.say(summary(run));
  }

  // A line at the start of each step; if steps are narrow, only some are named.
  paintSteps(g, c, { steps, edge }) {
    const every = Math.max(1, Math.ceil((steps * 62) / (this.width - LEFT - RIGHT)));
    const end = this.height - BOTTOM;
    for (let step = 0; step < steps; step += every) {
      const x = LEFT + edge(step);
      g.fillStyle = c.line;
      g.fillRect(x, TOP, 1, end - TOP);
      g.fillStyle = c.third;
      g.fillText(`step ${step + 1}`, x + 5, end + 9);
    }
  }

  paintStrip(g, c, { predicted, measured }) {
    const { left, right } = this.shown;
    const bottom = this.height - BOTTOM;
    const top = bottom - STRIP;
    const middle = (top + bottom) / 2;
    const residual = measured.map((bytes, k) => bytes - predicted[k]);
    const range = Math.max(1, round(greatest(residual.map(Math.abs))));
    const unit = bytesUnit(range);
    g.fillStyle = c.sunken;
    g.fillRect(left, top, right - left, STRIP);
    g.fillStyle = c.third;
    g.textAlign = 'right';
    const most = Number((range / unit.size).toPrecision(3));
    g.fillText(`+${most}`, left - 6, top + 5);
    g.fillText(`−${most}`, left - 6, bottom - 4);
    g.fillText(`residual: measured − predicted, ${unit.name}`, right, top - 8);
    g.textAlign = 'left';
    g.fillStyle = c.accent;
    residual.forEach((bytes, k) => {
      const length = ((bytes / range) * STRIP) / 2;
      if (Math.abs(length) > 0.2) g.fillRect(left + k, Math.min(middle, middle - length), 1, Math.abs(length));
    });
    g.fillStyle = c.third;
    g.fillRect(left, Math.round(middle), right - left, 1);
  }

  paintNow(g, c, { measured }) {
    let last = measured.length - 1;
    while (last >= 0 && Number.isNaN(measured[last])) last--;
    if (last < 0) return;
    const { left, y } = this.shown;
    g.fillStyle = c.accent;
    g.fillRect(left + last, TOP, 1, this.height - BOTTOM - TOP);
    g.beginPath();
    g.arc(left + last, y(measured[last]), 3.5, 0, 7);
    g.fill();
  }

  paintOver(g, c) {
    if (this.mark < 0 || !this.shown) return;
    g.fillStyle = c.second;
    g.fillRect(LEFT + this.mark, TOP, 1, this.height - BOTTOM - TOP);
  }

  point(column, event) {
    const inside = this.shown && column >= 0 && column < this.shown.predicted.length;
    const mark = inside ? column : -1;
    if (mark !== this.mark) {
      this.mark = mark;
      this.drawOver();
    }
    if (mark < 0) {
      hideTip(this.host);
      return;
    }
    const [title, rows] = this.words(mark);
    showTip(event, this.host, title, rows);
  }

  words(column) {
    const { predicted, measured, gpu, allocator, steps, edge } = this.shown;
    const step = Math.min(steps - 1, Math.floor(((column + 0.5) / predicted.length) * steps));
    const share = (column - edge(step)) / Math.max(1, edge(step + 1) - edge(step));
    const [expected, had] = [predicted[column], measured[column]];
    const by = had - expected;
    return [
      `step ${step + 1}, ${secondsText(share * this.store.run.predicted_step_seconds)} of the plan`,
      [
        ['predicted', Number.isNaN(expected) ? '–' : bytesText(expected)],
        ['measured', Number.isNaN(had) ? 'not yet' : bytesText(had)],
        ['difference', Number.isNaN(by) ? '–' : (by < 0 ? '−' : '+') + bytesText(Math.abs(by))],
        ...[
          ['held by PyTorch’s allocator', allocator[column]],
          ['in use on the whole GPU', gpu[column]],
        ].flatMap(([name, bytes]) => (Number.isNaN(bytes) ? [] : [[name, bytesText(bytes)]])),
      ],
    ];
  }

  key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !this.shown) return;
    event.preventDefault();
    event.stopPropagation();
    const { predicted, y } = this.shown;
    const column = Math.max(0, Math.min(predicted.length - 1, this.mark < 0 ? 0 : this.mark + by * 8));
    const box = this.host.getBoundingClientRect();
    this.point(column, { clientX: box.left + LEFT + column, clientY: box.top + y(predicted[column] || 0) });
    const [title, rows] = this.words(column);
    this.say(`${title}: ${rows.map(row => row.join(' ')).join(', ')}.`);
  }

  close() {
    this.stop();
    super.close();
  }
}

function trace(g, values, left, y, colour, width, dash) {
  g.strokeStyle = colour;
  g.lineWidth = width;
  g.setLineDash(dash);
  g.beginPath();
  let broken = true;
  values.forEach((bytes, k) => {
    if (Number.isNaN(bytes)) {
      broken = true;
      return;
    }
    if (broken) g.moveTo(left + k, y(bytes));
    else g.lineTo(left + k, y(bytes));
    broken = false;
  });
  g.stroke();
  g.setLineDash([]);
  g.lineWidth = 1;
}

const greatest = values => values.reduce((most, value) => (value > most ? value : most), 0);

// 1, 2 or 5 times a power of ten of its unit, not less than the bytes.
function round(bytes) {
  const unit = bytesUnit(bytes);
  const value = bytes / unit.size;
  if (!(value > 0)) return 0;
  const power = 10 ** Math.floor(Math.log10(value));
  return unit.size * power * [1, 2, 5, 10].find(times => times * power >= value);
}

function summary({ state, peak_bytes: peak, predicted_peak_bytes: predicted, budget_bytes: budget }) {
  const amounts = [
    ['largest arena measured', peak],
    ['predicted', predicted],
    ['budget', budget],
  ];
  const words = amounts.filter(([, bytes]) => bytes !== null).map(([name, bytes]) => `${name} ${bytesText(bytes)}`);
  return `The run is ${state}: ${words.join(', ')}.`;
}
