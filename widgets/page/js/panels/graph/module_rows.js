// The boxes of the module graph from top to bottom: open modules, unfolded folds, and positions.
import { folded, opsOf, runsOf, storagesOf } from '../../data/module_contents.js';

export const ROW = 24;
export const PAD = 8;
const GAP = 5;
// opened at first: at most this many levels, of which this many are informative
const DEEPEST = 3;
const TOLD = 2;
const NEARLY_ALL = 0.9;

export class ModuleRows {
  constructor(graphData) {
    Object.assign(this, { graphData, open: new Set(), unfolded: new Set(), rows: [], height: 0, runs: new Map() });
  }

  // The runs of parts of an opened part, computed once.
  runsIn(key, modules) {
    if (!this.runs.has(key)) {
      const withFold = run => ({ run, fold: run.length > 1 ? folded(run) : null });
      this.runs.set(key, runsOf(this.graphData, modules).map(withFold));
    }
    return this.runs.get(key);
  }
  top() {
    return this.runsIn('', [0]);
  }
  canOpen(part) {
    return !part.own && !part.ops && this.graphData.children(part.modules[0]).length > 0;
  }

  // The parts of one level as shown: a fold, or its parts individually with the key of their fold.
  shown(runs) {
    return runs.flatMap(({ run, fold }) => {
      if (fold && !this.unfolded.has(fold.key)) return [{ part: fold, run }];
      return run.map((part, k) => ({ part, foldKey: fold?.key, first: k === 0 }));
    });
  }

  build() {
    const rows = [];
    let y = PAD;
    const lay = (runs, depth, above) => {
      const level = this.shown(runs);
      level.forEach(({ part, foldKey, first }, k) => {
        const row = { part, foldKey, first, depth, above, y, place: k + 1, places: level.length };
        row.canOpen = this.canOpen(part);
        row.open = row.canOpen && this.open.has(part.key);
        row.last = k === level.length - 1;
        const here = rows.push(row) - 1;
        y += ROW;
        if (row.open) {
          y += 3;
          lay(this.runsIn(part.key, part.modules), depth + 1, here);
          y -= 1;
        }
        row.h = y - row.y;
        y += GAP;
      });
    };
    lay(this.top(), 0, -1);
    this.rows = rows;
    this.height = y;
    this.index();
    return this;
  }

  // Index of the boxes: the innermost box of every module, and the boxes of own ops.
  index() {
    this.byKey = new Map(this.rows.map((row, k) => [row.part.key, k]));
    this.moduleRow = new Int32Array(this.graphData.modules).fill(-1);
    this.opRow = new Map();
    this.storageRow = new Map();
    this.rows.forEach(({ part }, k) => {
      if (!part.own) for (const module of part.modules) this.moduleRow[module] = k;
      if (!part.ops) return;
      for (const op of part.ops) this.opRow.set(op, k);
      for (const storage of part.storages) this.storageRow.set(storage, k);
    });
    for (let module = 1; module < this.graphData.modules; module++) {
      if (this.moduleRow[module] < 0) this.moduleRow[module] = this.moduleRow[this.graphData.parentOf(module)];
    }
  }
  rowOfOp(op) {
    return this.opRow.get(op) ?? this.moduleRow[this.graphData.op_module[op]];
  }
  rowOfStorage(storage) {
    return this.storageRow.get(storage) ?? this.moduleRow[this.graphData.storage_module[storage]];
  }

  // The boxes of the selection or hover.
  rowsOf(focus) {
    const found = new Set();
    if (!focus) return found;
    if (focus.type === 'op') found.add(this.rowOfOp(focus.id));
    else if (focus.type === 'storage') found.add(this.rowOfStorage(focus.id));
    else if (focus.row !== undefined && this.byKey.has(focus.row)) found.add(this.byKey.get(focus.row));
    else if (focus.type === 'module') found.add(this.moduleRow[focus.id]);
    else if (focus.type === 'span') for (const op of focus.ops) found.add(this.rowOfOp(op));
    else for (const storage of focus.storages) found.add(this.rowOfStorage(storage));
    found.delete(-1);
    return found;
  }

  // The row whose header is at a height, or -1.
  at(y) {
    let low = 0;
    let high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle].y <= y) low = middle + 1;
      else high = middle;
    }
    return low && y < this.rows[low - 1].y + ROW ? low - 1 : -1;
  }

  toggle(row) {
    const { key } = row.part;
    if (this.open.has(key)) this.open.delete(key);
    else this.open.add(key);
    this.build();
  }
  // Fold or unfold a fold.
  refold(row) {
    if (row.part.count > 1) this.unfolded.add(row.part.key);
    else this.unfolded.delete(row.foldKey);
    this.build();
  }

  // Open the modules around a module and, with `own`, the module itself, to show its own ops; folds stay folded.
  openTo(module, own = false) {
    const path = [];
    for (let m = module; m > 0; m = this.graphData.parentOf(m)) path.unshift(m);
    let runs = this.top();
    let opened = false;
    for (const step of path) {
      const found = this.shown(runs).find(({ part }) => !part.own && part.modules.includes(step));
      if (!found || !this.canOpen(found.part) || (step === module && !own)) break;
      if (!this.open.has(found.part.key)) {
        this.open.add(found.part.key);
        opened = true;
      }
      runs = this.runsIn(found.part.key, found.part.modules);
    }
    if (opened) this.build();
  }

  // At first the parts that hold the most are open, because they explain the peak. A module that holds nearly all bytes
  // of its parent, or wraps a single one, is uninformative and does not count as a level.
  openLargest(measure) {
    let runs = this.top();
    let around = measure.total.bytes;
    const [bytes, ops] = [part => measure.of(part).bytes, part => measure.of(part).ops];
    for (let [level, told] = [0, 0]; level < DEEPEST && told < TOLD; level++) {
      const parts = this.shown(runs)
        .map(({ part }) => part)
        .filter(part => this.canOpen(part));
      const largest = parts.sort((a, b) => bytes(b) - bytes(a) || ops(b) - ops(a))[0];
      if (!largest) break;
      this.open.add(largest.key);
      if (bytes(largest) < NEARLY_ALL * around) told += 1;
      around = bytes(largest);
      runs = this.runsIn(largest.key, largest.modules);
    }
    this.build();
  }

  // The selection for a click on a row; always the same object for the same row.
  target(row) {
    const { part } = row;
    if (!part.own && !part.ops && part.modules.length === 1) return { type: 'module', id: part.modules[0] };
    part.target ||= {
      type: 'group',
      id: part.key,
      row: part.key,
      label: part.path + (part.count > 1 ? ` ×${part.count}` : ''),
      storages: storagesOf(this.graphData, part),
      ops: opsOf(this.graphData, part),
      modules: part.own ? [] : part.modules,
    };
    return part.target;
  }
}
