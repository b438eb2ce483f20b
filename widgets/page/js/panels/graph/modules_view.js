// The modules of the model as nested boxes, in execution order.
import { KIND_LABELS } from '../../core/kinds.js';
import { FoundModules } from './result_navigation.js';
import { amount, paintBox } from './module_box.js';
import { ModuleRows, PAD, ROW } from './module_rows.js';
import { paintScrollbar } from '../../plots/scrollbar.js';
import { TreeItems } from './tree_items.js';
import { hideTip, showTip } from '../../plots/tooltip.js';
import { bytesText, countText, plural, secondsText } from '../../core/units.js';

const INDENT = 9;
const ARROW = 20; // pixels from the left end of a box where a click opens it
const EDGE = 5; // pixels by which a box is narrower than its parent

export class ModulesView {
  constructor(plot, graphData) {
    Object.assign(this, { plot, store: plot.store, graphData, scroll: 0, at: 0, touched: false, pointing: false });
    this.tree = new ModuleRows(graphData).build();
    this.finds = new FoundModules(this);
    this.items = new TreeItems(plot.host, row => this.describe(row));
  }

  // Apply the measure of another plan. Until the user opens or closes something, the parts that hold the most in the
  // first plan are open, and remain so while a search finds better plans.
  measured(measure) {
    this.measure = measure;
    if (!this.touched && !this.planned) {
      this.planned = Boolean(measure.plan);
      this.tree.open.clear();
      this.tree.openLargest(measure);
    }
    this.tell();
  }

  enter() {
    this.plot.host.setAttribute('role', 'tree');
    this.tell();
  }
  leave() {
    this.items.clear();
    this.plot.host.setAttribute('role', 'group');
  }

  box(row) {
    const x = PAD + row.depth * INDENT;
    return { x, y: row.y - this.scroll, w: this.plot.width - x - PAD - row.depth * EDGE, h: row.h };
  }
  // Pixels that all boxes take.
  get wholeHeight() {
    return this.tree.height + 6;
  }
  get room() {
    return Math.max(0, this.tree.height - this.plot.height + 6);
  }
  scrollBy(pixels) {
    const before = this.scroll;
    this.scroll = Math.max(0, Math.min(this.room, this.scroll + pixels));
    if (this.scroll !== before) this.left();
    this.plot.draw();
  }
  // Scroll just far enough to show a row.
  show(k, margin = PAD) {
    const row = this.tree.rows[k];
    if (!row) return;
    const low = row.y + ROW + margin - this.plot.height;
    const high = row.y - margin;
    const to =
      this.scroll > high
        ? high
        : this.scroll < low
          ? Math.min(high, low + Math.max(0, this.plot.height / 2 - ROW))
          : this.scroll;
    this.scrollBy(to - this.scroll);
  }

  paint(g, c) {
    const { store, plot, tree } = this;
    const { search } = plot;
    const marked = tree.rowsOf(store.focus);
    this.scroll = Math.max(0, Math.min(this.room, this.scroll));
    tree.rows.forEach((row, k) => {
      const box = this.box(row);
      if (box.y > plot.height || box.y + box.h < -4) return;
      const found = search.any && search.hits(row.part);
      const faded = search.places.length > 0 && !found && !search.holds(row.part);
      const look = { marked: marked.has(k), found, faded };
      row.badge = paintBox(g, c, row, box, amount(store, this.measure, row.part), this.measure, look);
      if (!row.last) this.paintFlow(g, c, box);
    });
    paintScrollbar(g, c, plot, this.scroll, tree.height);
  }

  // What runs next.
  paintFlow(g, c, { x, y, h }) {
    g.fillStyle = c.strong;
    g.fillRect(x + 10, y + h, 1, 5);
  }

  paintOver(g, c) {
    const { store, plot, tree } = this;
    g.strokeStyle = c.ink;
    g.lineWidth = 1.5;
    for (const k of tree.rowsOf(store.hoverFocus)) {
      const { x, y, w } = this.box(tree.rows[k]);
      g.strokeRect(x + 0.5, y + 0.5, w - 1, ROW - 1);
    }
    const row = tree.rows[this.at];
    if (!row || !plot.host.matches(':focus-visible')) return;
    const { x, y, w } = this.box(row);
    g.strokeStyle = c.accent;
    g.lineWidth = 2;
    g.strokeRect(x - 1, y - 1, w + 2, ROW + 2);
  }

  rowAt(event) {
    return this.tree.at(this.plot.at(event)[1] + this.scroll);
  }

  moved(event) {
    const row = this.tree.rows[this.rowAt(event)];
    if (!row) {
      this.left();
      return;
    }
    this.pointing = true;
    const target = this.tree.target(row);
    if (this.store.hover?.type !== target.type || this.store.hover?.id !== target.id) this.store.set({ hover: target });
    const { part } = row;
    const { ops, bytes, seconds, kinds } = this.measure.of(part);
    const rows = [
      ['ops', countText(ops)],
      [this.store.plan ? 'holds at the peak' : 'owns', bytesText(bytes)],
    ];
    if (seconds) rows.push(['time in the step', secondsText(seconds, 3)]);
    const c = this.plot.colours();
    kinds.forEach((size, kind) => {
      if (size) rows.push([KIND_LABELS[kind], bytesText(size), c.kind[kind]]);
    });
    showTip(event, this.plot.host, part.path + (part.count > 1 ? ` ×${part.count}` : ''), rows, hint(row));
  }
  // The item under the pointer has changed.
  left() {
    if (!this.pointing) return;
    this.pointing = false;
    this.store.point();
    hideTip(this.plot.host);
  }

  clicked(event) {
    const [x] = this.plot.at(event);
    const k = this.rowAt(event);
    const row = this.tree.rows[k];
    if (!row) {
      this.store.set({ selection: null });
      return;
    }
    this.at = k;
    if (row.badge && x >= row.badge[0] && x <= row.badge[1]) this.change(() => this.tree.refold(row));
    else if (row.canOpen && x < this.box(row).x + ARROW) this.change(() => this.tree.toggle(row));
    else this.pick(row);
  }
  pick(row) {
    const target = this.tree.target(row);
    const now = this.store.selection;
    this.plot.mine = true;
    this.store.set({ selection: now?.type === target.type && now.id === target.id ? null : target });
    this.plot.mine = false;
  }
  // Open, close, fold or unfold; keeps the current row.
  change(act) {
    const row = this.tree.rows[this.at];
    const key = row?.part.key;
    this.touched = true;
    this.left();
    act();
    const fold = this.tree.rows.findIndex(({ part }) => part.count > 1 && row && part.key === row.foldKey);
    this.at = this.tree.byKey.get(key) ?? (fold >= 0 ? fold : this.nearest(row));
    this.show(this.at, 0);
    this.tell();
  }
  nearest(row) {
    const found = row ? this.tree.rows.findIndex(other => other.y >= row.y) : 0;
    return Math.max(0, found < 0 ? this.tree.rows.length - 1 : found);
  }

  key(event) {
    const { rows } = this.tree;
    const row = rows[this.at];
    const page = Math.max(1, Math.floor(this.plot.height / (ROW + 5)) - 1);
    const move = by => {
      this.at = Math.max(0, Math.min(rows.length - 1, this.at + by));
    };
    const act = {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      PageDown: () => move(page),
      PageUp: () => move(-page),
      Home: () => move(-rows.length),
      End: () => move(rows.length),
      ArrowRight: () => {
        if (row?.canOpen && !row.open) this.change(() => this.tree.toggle(row));
        else if (row?.open) move(1);
      },
      ArrowLeft: () => {
        if (row?.open) this.change(() => this.tree.toggle(row));
        else if (row?.above >= 0) this.at = row.above;
      },
      Enter: () => {
        if (row) this.pick(row);
      },
      ' ': () => {
        if (row && (row.part.count > 1 || row.foldKey)) this.change(() => this.tree.refold(row));
      },
    }[event.key];
    if (!act) return false;
    this.left();
    act();
    this.show(this.at);
    this.tell();
    return true;
  }

  // Show a selection made in another panel.
  follow(focus) {
    if (!focus || focus.type === 'span' || (focus.type === 'group' && focus.modules.size > 40)) return;
    const module = [...focus.modules][0];
    if (module === undefined) return;
    if (!this.tree.byKey.has(focus.row)) {
      this.touched = true;
      this.tree.openTo(module, focus.type !== 'module');
    }
    const first = Math.min(...this.tree.rowsOf(focus));
    if (!Number.isFinite(first)) return;
    this.goTo(first);
  }

  // Another query.
  found() {
    this.finds.renew();
  }
  stepFound(by) {
    this.finds.step(by);
  }
  // The position among the search results, in words.
  foundName() {
    return this.tree.rows[this.at]?.part.path || '';
  }
  // Make a row the current one for keys, and scroll it into view.
  goTo(k) {
    this.at = k;
    this.show(k);
    this.tell();
  }

  describe(row) {
    const { part } = row;
    const { text } = amount(this.store, this.measure, part);
    const fold = part.count > 1 ? `${part.count} alike, folded` : '';
    const about = [part.label, part.kind, fold, plural(this.measure.of(part).ops, 'op'), text];
    return about.filter(Boolean).join(', ');
  }
  tell() {
    if (this.plot.view === this) this.items.show(this.tree.rows, this.at, this.tree.rowsOf(this.store.focus));
  }

  summary() {
    const { graphData, store } = this;
    if (!graphData.ops) return 'The step runs no op.';
    const outer = this.tree.rows.filter(row => row.depth === 0);
    const top = outer.map(({ part }) => `${part.label} ${amount(store, this.measure, part).text}`);
    const list = top.slice(0, 8).join(', ') + (top.length > 8 ? ` and ${top.length - 8} more` : '');
    const by = { time: 'time in the step', partition: 'how tensors are split' }[store.metric] ?? 'memory at the peak';
    return `${plural(graphData.ops, 'op')} in ${plural(graphData.modules, 'module')}. By ${by}: ${list}.`;
  }
}

function hint(row) {
  if (row.part.count > 1) return `Stands for ${row.part.count} that are alike. Its badge unfolds them.`;
  return row.first && row.foldKey ? 'Its badge folds those that are alike.' : '';
}
