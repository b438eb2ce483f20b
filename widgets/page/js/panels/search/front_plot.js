// Plans by memory and step time: the Pareto-optimal plans are joined to a front, from which one can be chosen.
import { placeLabels } from '../../plots/axis_labels.js';
import { Plot } from '../../plots/plot.js';
import { secondsAxis, secondsMargin } from './seconds_axis.js';
import { digitsFor, ticks } from '../../plots/ticks.js';
import { hideTip, showTip } from '../../plots/tooltip.js';
import { bytesText, bytesUnit, countText, percentText, plural, secondsText } from '../../core/units.js';
import { standing } from '../../data/budget_answers.js';

const LEAST_LEFT = 56; // pixels for the numbers of the axis
const RIGHT = 14;
const TOP = 12;
const BOTTOM = 22;
const NOTHING = 1e-9; // seconds that are a rounding error
const REACH = 12; // pixels around a point that belong to it
const LABEL = 'Plans by memory and step time. Left and right move along the front, Enter takes, Shift-Enter compares.';
const WATCHED = ['front', 'plan', 'budget', 'budget_bytes', 'machine', 'compare', 'theme'];

export class FrontPlot extends Plot {
  // `take(bytes)` and `compare(bytes)` are called with the budget of the chosen plan.
  constructor(host, { store }, { take, compare }) {
    super(host, 'front', LABEL);
    Object.assign(this, { store, take, compare, near: null });
    this.stop = store.on(WATCHED, () => this.draw());
    host.addEventListener('pointermove', event => this.point(this.hit(...this.at(event)), event));
    host.addEventListener('pointerleave', () => this.point(null));
    host.addEventListener('blur', () => this.point(null));
    host.addEventListener('click', event => this.choose(this.hit(...this.at(event)), event.shiftKey));
    host.addEventListener('keydown', event => this.key(event));
  }

  get points() {
    return this.store.front.points;
  }
  get front() {
    return this.points.filter(point => point[6]);
  }

  scale(g) {
    const { machine } = this.store;
    const best = standing(this.store).plan;
    const costs = [...this.points.map(point => point[1]), ...(best ? [best.step_seconds] : [])];
    const floor = Math.min(machine.ideal_seconds, ...costs);
    const high = Math.max(floor * 1.1, ...costs) * 1.03;
    const low = floor - (high - floor) * 0.06;
    const end = machine.near_bytes;
    const right = this.width - RIGHT;
    const bottom = this.height - BOTTOM;
    const left = secondsMargin(g, { low, high, top: TOP, bottom }, LEAST_LEFT);
    return {
      low,
      high,
      end,
      left,
      right,
      top: TOP,
      bottom,
      x: bytes => left + (bytes / end) * (right - left),
      y: cost => bottom - ((cost - low) / (high - low)) * (bottom - TOP),
    };
  }

  paint(g, c) {
    this.scaled = null;
    if (!this.store.machine || !this.points.length) return;
    const scaled = (this.scaled = this.scale(g));
    secondsAxis(g, c, scaled);
    this.paintBudgets(g, c, scaled);
    this.paintPoints(g, c, scaled);
    this.paintChosen(g, c, scaled);
    this.say(this.sentence());
  }

  paintBudgets(g, c, { x, end, top, bottom, left, right }) {
    const unit = bytesUnit(end);
    const { step, values } = ticks(0, end / unit.size, (right - left) / 52);
    g.fillStyle = c.grid;
    for (const value of values) g.fillRect(Math.round(x(value * unit.size)), top, 1, bottom - top);
    g.fillStyle = c.third;
    const text = value => (value ? value.toFixed(digitsFor(step)) : `0 ${unit.name}`);
    const labels = values.map(value => [x(value * unit.size) + (value ? 0 : 6), text(value)]);
    placeLabels(g, labels, { left: 4, right: right + 10, y: bottom + 11 });
    const { bytes } = standing(this.store);
    if (bytes === null || bytes > end) return;
    g.fillStyle = c.limit;
    g.fillRect(x(bytes) - 0.75, top, 1.5, bottom - top);
  }

  paintPoints(g, c, { x, y }) {
    g.fillStyle = c.strong;
    for (const [bytes, cost, , , , , best] of this.points) if (!best) disc(g, x(bytes), y(cost), 2.5);
    const { front } = this;
    g.strokeStyle = c.second;
    g.beginPath();
    front.forEach(([bytes, cost], k) => {
      if (k) g.lineTo(x(bytes), y(front[k - 1][1]));
      else g.moveTo(x(bytes), y(cost));
      g.lineTo(x(bytes), y(cost));
    });
    g.stroke();
    for (const [bytes, cost] of front) ring(g, c, x(bytes), y(cost), 3.5);
  }

  // A is the plan shown in the other views, B the one it is compared with.
  paintChosen(g, c, { x, y }) {
    const { plan, bytes } = standing(this.store);
    const other = this.store.compare?.plan;
    const font = g.font;
    const letter = (text, at, cost, ground, ink) => {
      ring(g, c, x(at), y(cost), 7.5, ground);
      g.fillStyle = ink;
      g.font = '600 ' + font.replace('11px', '10px');
      g.textAlign = 'center';
      g.fillText(text, x(at), y(cost) + 0.5);
      g.textAlign = 'left';
      g.font = font;
    };
    if (other) letter('B', other.budget_bytes, other.step_seconds, c.panel, c.ink);
    if (plan) letter('A', Math.min(bytes, this.store.machine.near_bytes), plan.step_seconds, c.ink, c.panel);
  }

  paintOver(g, c) {
    if (!this.near || !this.scaled) return;
    g.strokeStyle = c.accent;
    g.lineWidth = 2;
    g.beginPath();
    g.arc(this.scaled.x(this.near[0]), this.scaled.y(this.near[1]), 8, 0, 7);
    g.stroke();
    g.lineWidth = 1;
  }

  // The point under the pointer; of several, one on the front.
  hit(px, py) {
    if (!this.scaled) return null;
    const { x, y } = this.scaled;
    let best = null;
    let least = REACH ** 2;
    for (const point of this.points) {
      const distance = (x(point[0]) - px) ** 2 + (y(point[1]) - py) ** 2 - (point[6] ? 20 : 0);
      if (distance < least) {
        least = distance;
        best = point;
      }
    }
    return best;
  }

  point(near, event) {
    if (near !== this.near) {
      this.near = near;
      this.drawOver();
    }
    this.host.style.cursor = near ? 'pointer' : '';
    if (!near) {
      hideTip(this.host);
      return;
    }
    const [budget, cost, out, moved, stalled, ideal, best, again] = near;
    showTip(
      event,
      this.host,
      best ? 'Plan on the front' : 'Plan that another beats',
      [
        ['budget', bytesText(budget)],
        ['step time', secondsText(cost, 3)],
        ['of ideal', percentText(ideal / 100)],
        ['stalled', secondsText(stalled < NOTHING ? 0 : stalled)],
        ...(again ? [['run again', secondsText(again)]] : []),
        ['swapped out', bytesText(out)],
        ['tensors moved', countText(moved)],
      ],
      best ? 'click to take, Shift-click to compare' : 'click to compare',
    );
  }

  choose(point, compare) {
    if (point) (compare || !point[6] ? this.compare : this.take)(point[0]);
  }

  key(event) {
    const { front } = this;
    const by = { ArrowLeft: -1, ArrowRight: 1, Enter: 0 }[event.key];
    if (by === undefined || !front.length || !this.scaled) return;
    event.preventDefault();
    event.stopPropagation();
    if (!by) {
      this.choose(this.near, event.shiftKey);
      return;
    }
    const { bytes } = standing(this.store);
    const now = this.near ? front.indexOf(this.near) : front.findIndex(point => point[0] >= bytes) - (by > 0 ? 1 : 0);
    const near = front[Math.max(0, Math.min(front.length - 1, now + by))];
    const box = this.host.getBoundingClientRect();
    this.point(near, { clientX: box.left + this.scaled.x(near[0]), clientY: box.top + this.scaled.y(near[1]) });
    this.say(`Plan within ${bytesText(near[0])}, ${secondsText(near[1])} per step.`);
  }

  sentence() {
    const { front } = this;
    if (!front.length) return 'No plan is known yet.';
    const words = ([bytes, cost]) => `${bytesText(bytes)} at ${secondsText(cost)}`;
    const last = words(front[front.length - 1]);
    const range = front.length > 1 ? `from ${words(front[0])} to ${last}` : last;
    return `${plural(front.length, 'plan')} on the front, ${range} per step.`;
  }

  close() {
    this.stop();
    super.close();
  }
}

function disc(g, x, y, radius) {
  g.beginPath();
  g.arc(x, y, radius, 0, 7);
  g.fill();
}

function ring(g, c, x, y, radius, ground = c.panel) {
  g.fillStyle = ground;
  g.strokeStyle = c.ink;
  g.lineWidth = 1.5;
  disc(g, x, y, radius);
  g.stroke();
  g.lineWidth = 1;
}
