// The best plan found so far over the time searched, between the simple policies above and the bound below.
import { fitText } from '../../plots/fit_text.js';
import { placeLabels } from '../../plots/axis_labels.js';
import { Plot } from '../../plots/plot.js';
import { meaning } from './policies.js';
import { logTicks, secondsAxis, secondsMargin } from './seconds_axis.js';
import { hideTip, showTip } from '../../plots/tooltip.js';
import { countText, percentText, plural, secondsText } from '../../core/units.js';
import { standing } from '../../data/budget_answers.js';

const LEAST_LEFT = 56; // pixels for the numbers of the axis
const TOP = 8;
const BOTTOM = 22;
const LINE = 15; // pixels between labels
const LEAD = 8; // pixels from where a line ends to its label
const MOST = 0.5; // largest share of the width for labels
const LEAST = 0.02; // least span of the axis, as a share of the fastest step
const AFTER = 'seconds searched';
const SPREAD = 2.5; // a policy this many times farther from the bound than the search's start is only named at the top
const LABEL = 'Best plan found so far, over the time searched. Left and right move from find to find.';

export class SearchCurve extends Plot {
  constructor(host, { store }) {
    super(host, 'search', LABEL);
    this.store = store;
    this.mark = -1;
    this.labels = [];
    this.stop = store.on(['search', 'plan', 'budget', 'theme'], () => this.draw());
    host.addEventListener('pointermove', event => {
      const [x, y] = this.at(event);
      this.point(this.findAt(x), event);
      const named = this.labelAt(x, y);
      if (!named) return;
      const meant = meaning(named.name, this.store.search.method);
      showTip(event, host, named.name, [['step time', secondsText(named.cost, 3)]], meant);
    });
    host.addEventListener('pointerleave', () => this.point(-1));
    host.addEventListener('blur', () => this.point(-1));
    host.addEventListener('keydown', event => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by || !this.finds.length) return;
      event.preventDefault();
      event.stopPropagation();
      this.walk(Math.max(0, Math.min(this.finds.length - 1, this.mark < 0 ? this.finds.length - 1 : this.mark + by)));
    });
  }

  get finds() {
    return this.store.search?.history ?? [];
  }

  // The scales of times and costs, from the data to show.
  scale(g) {
    const { seconds, limit_seconds: limit, baselines, bound_seconds: bound, ideal_seconds: ideal } = this.store.search;
    const finds = this.finds;
    const known = baselines.filter(([, cost]) => cost !== null);
    const best = finds.length ? finds[finds.length - 1][2] : null;
    const drawn = standing(this.store).plan?.step_seconds ?? Infinity;
    const beaten = drawn < Math.min(best ?? Infinity, ...known.map(([, cost]) => cost)) * 0.99995;
    if (beaten) known.push(['known plan', drawn]); // found earlier, until the search finds a better one
    const costs = known.map(([, cost]) => cost);
    const least = Math.min(best ?? Infinity, ...costs); // a known plan may run ops again, where the bound is for others
    const floor = Math.min(bound ?? ideal ?? Infinity, least);
    const first = finds.length ? finds[0][2] : Math.min(...costs);
    const others = costs.filter(cost => cost > floor * (1 + LEAST));
    // if all known values are at the bound, the next policy shows how much that is worth
    const near = first - floor < floor * LEAST && others.length ? Math.min(...others) : first;
    const room = Math.max(near - floor, floor * LEAST) * SPREAD;
    const shown = costs.filter(cost => cost - floor <= room);
    const high = floor + Math.max(near - floor, ...shown.map(cost => cost - floor), floor * LEAST) * 1.05;
    const low = floor - (high - floor) * 0.06;
    const to = Math.max(limit ?? 0, seconds ?? 0, finds.length ? finds[finds.length - 1][0] : 0, 1);
    const from = Math.min(to / 20, Math.max(to / 400, finds.length ? finds[0][0] : to / 100));
    const words = known.map(([name, cost]) => `↑ ${name} ${secondsText(cost)}`);
    if (best !== null) words.push(`search ${secondsText(best)}`);
    if (bound !== null) words.push(`lower bound ${secondsText(bound)}`);
    const widths = [AFTER, ...words].map(text => g.measureText(text).width + 24);
    const right = this.width - Math.min(MOST * this.width, Math.max(...widths));
    const bottom = this.height - BOTTOM;
    const left = secondsMargin(g, { low, high, top: TOP, bottom }, LEAST_LEFT);
    return {
      low,
      high,
      from,
      to,
      left,
      right,
      top: TOP,
      bottom,
      known,
      beaten,
      bound,
      x: at => left + (Math.log(Math.max(from, at) / from) / Math.log(to / from)) * (right - left),
      y: cost => bottom - ((cost - low) / (high - low)) * (bottom - TOP),
    };
  }

  paint(g, c) {
    const { search } = this.store;
    this.scaled = null;
    this.labels = [];
    if (!search || (!search.baselines.length && !this.finds.length)) return;
    const scaled = (this.scaled = this.scale(g));
    secondsAxis(g, c, scaled);
    this.paintTimes(g, c, scaled);
    const { labels } = this;
    this.paintLevels(g, c, scaled, labels);
    if (this.finds.length) this.paintFinds(g, c, scaled, labels);
    paintLabels(g, scaled, labels, this.width);
    this.say(summary(search));
  }

  paintTimes(g, c, { from, to, x, top, bottom }) {
    const values = logTicks(from, to);
    g.fillStyle = c.grid;
    for (const value of values) g.fillRect(Math.round(x(value)), top, 1, bottom - top);
    g.fillStyle = c.third;
    const text = value => (value >= 1 ? value.toFixed(0) : String(Number(value.toPrecision(1))));
    const labels = values.map(value => [x(value), text(value)]);
    const end = placeLabels(g, labels, { left: 0, right: x(to) + 8, y: bottom + 11, gap: 10 });
    g.fillText(AFTER, Math.max(end + 10, x(to) + 8), bottom + 11);
  }

  paintLevels(g, c, { left, right, y, top, high, known, bound }, labels) {
    const level = (cost, dash, colour) => {
      g.strokeStyle = colour;
      g.setLineDash(dash);
      g.beginPath();
      g.moveTo(left, y(cost));
      g.lineTo(right, y(cost));
      g.stroke();
      g.setLineDash([]);
    };
    for (const [name, cost] of known) {
      const text = `${name} ${secondsText(cost)}`;
      if (cost > high) {
        labels.push({ y: top - 2, text: `↑ ${text}`, colour: c.third, name, cost });
        continue;
      }
      level(cost, [2, 3], c.third);
      labels.push({ y: y(cost), text, colour: c.third, name, cost });
    }
    if (bound === null) return;
    level(bound, [], c.ink);
    const text = `lower bound ${secondsText(bound)}`;
    labels.push({ y: y(bound) + 0.01, text, colour: c.ink, name: 'lower bound', cost: bound });
  }

  paintFinds(g, c, { x, y, from, beaten }, labels) {
    const finds = this.finds;
    const [last, , best] = finds[finds.length - 1];
    const end = x(Math.max(last, this.store.search.seconds ?? 0, from));
    g.strokeStyle = c.accent;
    g.lineWidth = 2;
    g.beginPath();
    finds.forEach(([at, , cost], k) => {
      if (k) g.lineTo(x(at), y(finds[k - 1][2]));
      else g.moveTo(x(at), y(cost));
      g.lineTo(x(at), y(cost));
    });
    g.lineTo(end, y(best));
    g.stroke();
    g.lineWidth = 1;
    g.fillStyle = c.accent;
    g.beginPath();
    g.arc(end, y(best), 3.5, 0, 7);
    g.fill();
    labels.push({
      y: y(best) - 0.01,
      text: `${beaten ? 'search' : 'best'} ${secondsText(best)}`,
      colour: c.ink,
      weight: '600 ',
    });
  }

  paintOver(g, c) {
    const find = this.finds[this.mark];
    if (!find || !this.scaled) return;
    const { x, y, top, bottom } = this.scaled;
    g.fillStyle = c.second;
    g.fillRect(Math.round(x(find[0])), top, 1, bottom - top);
    g.strokeStyle = c.ink;
    g.lineWidth = 1.5;
    g.beginPath();
    g.arc(x(find[0]), y(find[2]), 4.5, 0, 7);
    g.stroke();
    g.lineWidth = 1;
  }

  // The label under the pointer, of those whose name has a meaning.
  labelAt(px, py) {
    if (!this.scaled || px <= this.scaled.right + LEAD) return null;
    return this.labels.find(({ name, place }) => meaning(name) && Math.abs(place - py) <= LINE / 2) ?? null;
  }

  // The plan that was the best at a position.
  findAt(px) {
    if (!this.scaled || px < this.scaled.left - 8 || px > this.scaled.right + 8) return -1;
    const finds = this.finds;
    for (let k = finds.length - 1; k >= 0; k--) if (this.scaled.x(finds[k][0]) <= px + 1) return k;
    return finds.length ? 0 : -1;
  }

  point(mark, event) {
    if (mark !== this.mark) {
      this.mark = mark;
      this.drawOver();
    }
    if (mark < 0) {
      hideTip(this.host);
      return;
    }
    const { bound_seconds: bound } = this.store.search;
    const [seconds, evaluations, cost, method] = this.finds[mark];
    const rows = [
      ['step time', secondsText(cost, 3)],
      ['found by', method],
      ['evaluations', countText(evaluations)],
    ];
    if (bound) rows.push(['over lower bound', percentText(Math.max(0, cost / bound - 1))]);
    showTip(event, this.host, `best after ${secondsText(seconds)}`, rows);
  }

  walk(mark) {
    const [seconds, , cost, method] = this.finds[mark];
    const box = this.host.getBoundingClientRect();
    this.point(mark, { clientX: box.left + this.scaled.x(seconds), clientY: box.top + this.scaled.y(cost) });
    this.say(`After ${secondsText(seconds)} ${method} found ${secondsText(cost)} per step.`);
  }

  close() {
    this.stop();
    super.close();
  }
}

// Labels beside their lines. The lowest is at its own line; labels that would touch move up, away from the bound and
// from the axis below it, and a short leader connects each to its line.
function paintLabels(g, { right, top, bottom }, labels, width) {
  labels.sort((a, b) => a.y - b.y);
  const places = labels.map(({ y }) => y);
  let most = bottom - 3;
  for (let k = places.length - 1; k >= 0; k--) {
    places[k] = Math.min(places[k], most);
    most = places[k] - LINE;
  }
  for (let k = 0, least = top - 2; k < places.length; k++) {
    places[k] = Math.max(places[k], least);
    least = places[k] + LINE;
  }
  const font = g.font;
  labels.forEach((label, k) => {
    const { y, text, colour, weight = '' } = label;
    label.place = places[k];
    if (y >= top) {
      g.strokeStyle = colour;
      g.beginPath();
      g.moveTo(right, y);
      g.lineTo(right + LEAD, places[k]);
      g.stroke();
    }
    g.font = weight + font;
    g.fillStyle = colour;
    g.fillText(fitText(g, text, width - right - LEAD - 8), right + LEAD + 4, places[k]);
  });
  g.font = font;
}

function summary({ history, evaluations, bound_seconds: bound, seconds }) {
  if (!history.length) return 'Not searched yet.';
  const least = bound === null ? '' : `; lower bound ${secondsText(bound)}`;
  const best = secondsText(history[history.length - 1][2]);
  return `Best step time ${best} after ${secondsText(seconds)} and ${plural(evaluations, 'evaluation')}${least}.`;
}
