// Navigation in the schedule: scrolling, zooming, following the selection and stepping through search results.
import { PHASES } from '../../core/kinds.js';
import { opFacts } from '../../data/neighbours.js';
import { SchedulePicture, TOP } from './schedule_picture.js';
import { hideTip, showTip } from '../../plots/tooltip.js';
import { bytesText, plural, secondsText } from '../../core/units.js';

export class ScheduleView extends SchedulePicture {
  measured(measure) {
    this.measure = measure;
    this.rows = null; // created when it is first shown
  }

  enter() {
    this.plot.host.setAttribute('role', 'group');
  }

  leave() {}

  scrollBy(pixels) {
    this.ready();
    this.scroll = Math.max(0, Math.min(this.height - this.room, this.scroll + pixels));
    this.left();
    this.plot.draw();
  }

  zoomBy(factor, y = TOP + this.room / 2) {
    this.ready();
    const row = (this.scroll + y - TOP) / this.rowHeight;
    this.zoom = Math.max(1, Math.min(this.deepest, this.zoom * factor));
    this.scroll = row * this.rowHeight - (y - TOP);
    this.scrollBy(0);
  }

  wheel(event) {
    if (event.shiftKey) return false;
    this.zoomBy(Math.exp(-event.deltaY * 0.002), this.plot.at(event)[1]);
    return true;
  }

  opAt(event) {
    const [x, y] = this.plot.at(event);
    const row = Math.floor((y - TOP + this.scroll) / this.rowHeight);
    if (y < TOP || row < 0 || row >= this.rows.count) return -1;
    const lane = this.lanes().find(each => x >= each.x && x < each.x + each.w);
    const ops = lane ? lane.ops(row) : [];
    return ops.length ? ops[Math.floor(((x - lane.x) / lane.w) * ops.length)] : -1;
  }

  moved(event) {
    const op = this.rows ? this.opAt(event) : -1;
    if (op < 0) {
      this.left();
      return;
    }
    this.pointing = true;
    this.store.point('op', op);
    const { graphData, measure } = this;
    const rows = [
      ['op', graphData.shortTarget(op)],
      ['phase', PHASES[graphData.op_phase[op]]],
    ];
    const seconds = measure.secondsOf(op);
    const runs = measure.plan?.slots ? measure.plan.slotsOf(op).length : 1;
    if (seconds) rows.push(['takes', secondsText(seconds, 3) + (runs > 1 ? ` in ${runs} runs` : '')]);
    rows.push(...opFacts(graphData, op));
    rows.push(['makes', bytesText(measure.made[op])], ['working set', bytesText(graphData.op_working_set[op])]);
    showTip(event, this.plot.host, graphData.opName(op), rows);
  }

  left() {
    if (!this.pointing) return;
    this.pointing = false;
    this.store.point();
    hideTip(this.plot.host);
  }

  clicked(event) {
    const op = this.opAt(event);
    this.plot.mine = true;
    if (op < 0) this.store.set({ selection: null });
    else this.store.select('op', op);
    this.plot.mine = false;
  }

  key(event) {
    const far = this.room * (event.shiftKey ? 0.5 : 0.12);
    const act = {
      w: () => this.zoomBy(4 / 3),
      s: () => this.zoomBy(0.75),
      a: () => this.scrollBy(-far),
      d: () => this.scrollBy(far),
      pageup: () => this.scrollBy(-this.room),
      pagedown: () => this.scrollBy(this.room),
      arrowup: () => this.step(-1),
      arrowdown: () => this.step(1),
      0: () => {
        this.zoom = 1;
        this.scrollBy(-this.height);
      },
    }[event.key.toLowerCase()];
    if (act) act();
    return Boolean(act);
  }

  // The forward op above or below the one selected.
  step(by) {
    const { focus } = this.store;
    const first = focus ? [...focus.ops][0] : undefined;
    const row = first === undefined ? Math.round(this.scroll / this.rowHeight) : this.rows.rowOf[first] + by;
    const op = this.rows.ops[Math.max(0, Math.min(this.rows.count - 1, row))];
    if (op !== undefined) this.store.set({ selection: { type: 'op', id: op } });
  }

  // Scroll to a selection made in another panel.
  follow(focus) {
    if (!focus || !focus.ops.size || !this.ready().count) return;
    const rows = [...focus.ops].map(op => this.rows.rowOf[op]).filter(row => row >= 0);
    if (!rows.length || rows.some(row => this.y(row) >= TOP && this.y(row + 1) <= this.plot.height)) return;
    this.scrollBy(this.y(rows[0]) - TOP - this.room / 2);
  }

  foundName() {
    const op = this.plot.search.opList[this.plot.search.opAt];
    return op === undefined ? 'no op' : this.graphData.opTitle(op);
  }

  found() {
    if (this.plot.search.any) this.stepFound(1);
  }

  stepFound(by) {
    const { search } = this.plot;
    const { opList } = search;
    if (!opList.length || !this.ready().count) return;
    search.opAt = (search.opAt + by + opList.length) % opList.length;
    this.follow({ ops: new Set([opList[search.opAt]]) });
  }

  summary() {
    const { graphData, rows } = this;
    const updates = graphData.ops - graphData.forwardOps - graphData.backwardOps;
    const recomputed = rows.kept.filter(kept => kept.recomputed).length;
    const swapped = rows.kept.filter(kept => kept.away && !kept.recomputed).length;
    const phases = [
      [graphData.forwardOps, 'forward op'],
      [graphData.backwardOps, 'backward op'],
      [updates, 'optimizer op'],
    ];
    return (
      `Schedule: ${phases.map(([count, noun]) => plural(count, noun)).join(', ')}. ` +
      `${plural(rows.kept.length, 'activation')} kept for backward, ${swapped} of them swapped` +
      (recomputed ? `, ${recomputed} recomputed.` : '.')
    );
  }
}
