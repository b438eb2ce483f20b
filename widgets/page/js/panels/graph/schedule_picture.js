// Draw the schedule: forward ops downwards, each with its backward ops at the same height on the other side, and
// between them the activations saved for backward. If rows are thinner than a pixel, each pixel shows its largest op.
import { fitText } from '../../plots/fit_text.js';
import { ACTIVATION } from '../../core/kinds.js';
import { shortTarget } from '../../data/module_contents.js';
import { paintScrollbar } from '../../plots/scrollbar.js';
import { ScheduleRows } from './schedule_rows.js';
import { opTone } from '../../data/partition_ways.js';
import { shade } from '../../core/theme.js';

export const TOP = 24; // pixels for the names of the lanes
const GUTTER = 66; // pixels for the names of modules
const TALLEST = 28; // pixels of a row at the deepest zoom
const READABLE = 13; // least pixels of a row with readable text
const ROOMY = 24; // least pixels of a module to show its own name instead of its parent's
const MOSTLY = 0.7; // share of the view that such modules must cover
const FAINT = 0.22;

export class SchedulePicture {
  constructor(plot, graphData) {
    Object.assign(this, { plot, store: plot.store, graphData, zoom: 1, scroll: 0, rows: null, pointing: false });
  }

  ready() {
    this.rows ||= new ScheduleRows(this.graphData, this.store.plan);
    return this.rows;
  }

  get room() {
    return Math.max(1, this.plot.height - TOP);
  }

  get rowHeight() {
    return Math.min(TALLEST, this.room / Math.max(1, this.rows.count)) * this.zoom;
  }

  get height() {
    return Math.max(this.room, this.rows.count * this.rowHeight);
  }

  get deepest() {
    return Math.max(1, TALLEST / Math.min(TALLEST, this.room / Math.max(1, this.rows.count)));
  }

  y(row) {
    return TOP - this.scroll + row * this.rowHeight;
  }

  // Lanes as `{name, x, w, ops(row), right}`; a step without a backward pass is one lane.
  lanes() {
    const { rows, graphData, plot } = this;
    const w = plot.width - GUTTER - 10;
    const forward = row => rows.ops.subarray(row, row + 1);
    if (!graphData.backwardOps) return [{ name: 'forward ↓', x: GUTTER, w, ops: forward }];
    const lane = (name, from, share, ops, right) => ({ name, x: GUTTER + w * from, w: w * share, ops, right });
    return [
      lane('forward ↓', 0, 0.31, forward, true),
      lane('backward ↑', 0.57, 0.31, rows.backward),
      lane(this.updateName(), 0.89, 0.11, rows.update),
    ];
  }

  updateName() {
    return this.graphData.facts.find(fact => /^(sgd|adamw?)$/i.test(fact)) || 'update';
  }

  between(lanes) {
    const left = lanes[0].x + lanes[0].w + 3;
    return { left, right: lanes[1].x - 3, name: 'kept for backward' };
  }

  // Between 0 and 1: the share of its lane that a bar fills, and its darkness.
  share(op) {
    const { metric } = this.store;
    if (metric === 'kind' || metric === 'partition') return 1;
    const { made, most, longest } = this.measure;
    const part = metric === 'time' ? this.measure.secondsOf(op) / longest : made[op] / most;
    return Math.max(0.04, Math.sqrt(part || 0));
  }

  colour(c, op) {
    const tone = opTone(this.store, this.graphData, op);
    if (tone !== null) return tone < 0 ? c.strong : shade(c, tone);
    if (this.store.metric !== 'kind') return shade(c, 0.1 + 0.9 * this.share(op));
    const made = this.graphData.writes(op);
    return made.length ? c.kind[this.graphData.kindOf(made[0])] : c.phase[this.graphData.op_phase[op]];
  }

  visible() {
    const first = Math.max(0, Math.floor(this.scroll / this.rowHeight));
    return [first, Math.min(this.rows.count, Math.ceil((this.scroll + this.room) / this.rowHeight) + 1)];
  }

  paint(g, c) {
    const { plot } = this;
    this.ready();
    this.scroll = Math.max(0, Math.min(this.height - this.room, this.scroll));
    const lanes = this.lanes();
    g.fillStyle = c.third;
    g.textAlign = 'center';
    const between = lanes.length > 1 ? this.between(lanes) : null;
    for (const { name, x, w } of lanes) g.fillText(fitText(g, name, w + 10), x + w / 2, 12);
    if (between) {
      const { name, left, right } = between;
      g.fillText(fitText(g, name, right - left + 24), (left + right) / 2, 12);
    }
    g.textAlign = 'left';
    g.save();
    g.beginPath();
    g.rect(0, TOP, plot.width, this.room);
    g.clip();
    g.fillStyle = c.sunken;
    for (const { x, w } of lanes) g.fillRect(x, TOP, w, this.room);
    this.paintStages(g, c);
    if (between) this.paintKept(g, c, between);
    const thin = this.rowHeight < 1.5;
    for (const lane of lanes)
      if (thin) this.paintThin(g, c, lane);
      else this.paintLane(g, c, lane);
    g.restore();
    paintScrollbar(g, c, plot, this.scroll, this.zoom > 1 ? this.height : 0, TOP);
  }

  // Names of modules at the left, at the deepest level at which they have room.
  paintStages(g, c) {
    const [first, last] = this.visible();
    const { levels } = this.rows;
    let level = levels[0];
    for (const starts of levels) if (this.named(starts, first, last) > MOSTLY * (last - first)) level = starts;
    if (!level) return;
    let below = -Infinity;
    for (let k = 0; k < level.length; k++) {
      const end = endOf(level, k, this.rows);
      if (end <= first || level[k].row >= last) continue;
      const y = this.y(level[k].row);
      const module = level[k].module;
      if (level !== levels[0] && (end - level[k].row) * this.rowHeight < READABLE) continue;
      g.fillStyle = c.line;
      g.fillRect(0, Math.round(y), this.plot.width, 1);
      const at = Math.max(TOP + 8, y + 8);
      if (!module || at < below + 12 || this.y(end) - at < 3) continue;
      g.fillStyle = c.second;
      g.fillText(this.stageName(g, module), 8, at);
      below = at;
    }
  }

  // Rows in view that belong to a module with ample room for its name.
  named(starts, first, last) {
    return starts.reduce((sum, { row }, k) => {
      const end = endOf(starts, k, this.rows);
      const inView = Math.min(end, last) - Math.max(row, first);
      return sum + ((end - row) * this.rowHeight >= ROOMY && inView > 0 ? inView : 0);
    }, 0);
  }

  // A numeric name is preceded by the name of its list if there is room, because a number alone says little.
  stageName(g, module) {
    const names = [this.graphData.module_labels[module]];
    for (let m = this.graphData.parentOf(module); m > 0 && /^\d+$/.test(names[0]); m = this.graphData.parentOf(m)) {
      names.unshift(this.graphData.module_labels[m]);
    }
    while (names.length > 1 && g.measureText(names.join('.')).width > GUTTER - 10) names.shift();
    return fitText(g, names.join('.'), GUTTER - 10);
  }

  // Lines from the op that makes an activation to the op that reads it; dashed if it is off the device in between.
  paintKept(g, c, { left, right }) {
    const { focus } = this.store;
    const rowHeight = this.rowHeight;
    const drawn = [new Set(), new Set(), new Set(), new Set()];
    const gap = (right - left) * 0.3;
    const draw = ({ away, bytes }, from, to, on) => {
      g.strokeStyle = on ? c.ink : c.kind[ACTIVATION];
      g.globalAlpha = on ? 1 : focus ? 0.14 : rowHeight < 1.2 ? 0.5 : 0.9;
      g.lineWidth = on ? 2 : Math.max(0.6, Math.min(3, Math.sqrt(bytes / 1e8)) * Math.min(1, rowHeight));
      g.beginPath();
      g.moveTo(left, from);
      if (away) {
        g.lineTo(left + gap, from);
        g.moveTo(right - gap, to);
      }
      g.lineTo(right, to);
      g.stroke();
    };
    for (const kept of this.rows.kept) {
      const from = this.y(kept.from + 0.5);
      const to = this.y(kept.to + 0.5);
      if (Math.max(from, to) < TOP || Math.min(from, to) > this.plot.height) continue;
      const on = focus !== null && focus.storages.has(kept.storage);
      const place = Math.round(from) * 8192 + Math.round(to); // one line for all lines that would coincide
      const look = drawn[2 * kept.away + on];
      if (look.has(place)) continue;
      look.add(place);
      draw(kept, from, to, on);
    }
    g.globalAlpha = 1;
    g.lineWidth = 1;
  }

  // Rows of a lane thinner than a pixel.
  paintThin(g, c, { x, w, ops, right }) {
    const { search } = this.plot;
    const { focus } = this.store;
    const [first, last] = this.visible();
    const most = new Map();
    for (let row = first; row < last; row++) {
      const y = Math.floor(this.y(row));
      for (const op of ops(row)) {
        const rank = this.share(op) + (focus?.ops.has(op) ? 4 : 0) + (search.any && search.ops[op] ? 2 : 0);
        const before = most.get(y);
        if (!before || rank > before.rank) most.set(y, { op, rank });
      }
    }
    for (const [y, { op }] of most) {
      const width = w * this.share(op);
      g.globalAlpha = this.strength(op);
      g.fillStyle = focus?.ops.has(op) ? c.ink : this.colour(c, op);
      g.fillRect(right ? x + w - width : x, y, width, 1);
    }
    g.globalAlpha = 1;
  }

  strength(op) {
    const { search } = this.plot;
    const { focus } = this.store;
    return (focus && !focus.ops.has(op)) || (search.opList.length > 0 && !search.ops[op]) ? FAINT : 1;
  }

  paintLane(g, c, lane) {
    const { focus } = this.store;
    const [first, last] = this.visible();
    const height = this.rowHeight;
    const pad = height > 4 ? 1 : height > 2 ? 0.4 : 0;
    for (let row = first; row < last; row++) {
      const ops = lane.ops(row);
      for (let k = 0; k < ops.length; k++) {
        const op = ops[k];
        const cell = lane.w / ops.length;
        const width = Math.max(0.5, cell * this.share(op));
        const x = lane.right ? lane.x + lane.w - width : lane.x + cell * k;
        const y = this.y(row);
        g.globalAlpha = this.strength(op);
        g.fillStyle = this.colour(c, op);
        g.fillRect(x, y, width, height - pad);
        if (height >= READABLE) this.paintName(g, c, op, lane, { x, y, width, cell, height });
        g.globalAlpha = 1;
        if (!focus?.ops.has(op)) continue;
        g.strokeStyle = c.ink;
        g.lineWidth = focus.ops.size < 60 ? 1.5 : 0.5;
        g.strokeRect(x - 0.5, y - 0.5, width + 1, Math.max(2, height - pad + 1));
        g.lineWidth = 1;
      }
    }
  }

  // The name of an op in its bar or beside it.
  paintName(g, c, op, { right }, { x, y, width, cell, height }) {
    const name = shortTarget(this.graphData.targetOf(op));
    const long = g.measureText(name).width;
    const inside = long < width - 10;
    if (!inside && long > cell - width - 8) return;
    const dark = (opTone(this.store, this.graphData, op) ?? this.share(op)) > 0.42 && this.store.metric !== 'kind';
    const made = this.graphData.writes(op);
    const onKind = made.length ? c.onKind[this.graphData.kindOf(made[0])] : c.panel;
    g.fillStyle = !inside ? c.ink : this.store.metric === 'kind' ? onKind : dark ? c.panel : c.ink;
    const middle = y + height / 2;
    if (inside) g.fillText(name, right ? x + width - long - 5 : x + 5, middle);
    else g.fillText(name, right ? x - long - 5 : x + width + 5, middle);
  }

  paintOver(g, c) {
    const { hoverFocus } = this.store;
    if (!hoverFocus || hoverFocus.ops.size > 400 || !this.rows) return;
    const height = Math.max(3, this.rowHeight + 1);
    g.save();
    g.beginPath();
    g.rect(0, TOP, this.plot.width, this.room);
    g.clip();
    g.strokeStyle = c.ink;
    g.lineWidth = 1.5;
    const lanes = this.lanes();
    for (const op of hoverFocus.ops) {
      const row = this.rows.rowOf[op];
      const lane = lanes[this.graphData.op_phase[op]];
      if (row < 0 || !lane) continue;
      const ops = lane.ops(row);
      const cell = lane.w / ops.length;
      g.strokeRect(lane.x + cell * ops.indexOf(op) - 1, this.y(row) - 1, cell + 2, height);
    }
    g.restore();
  }
}

const endOf = (starts, k, rows) => (k + 1 < starts.length ? starts[k + 1].row : rows.count);
