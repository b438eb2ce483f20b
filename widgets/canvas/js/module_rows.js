// The boxes of the module graph from top to bottom: which modules are open, which folds unfolded, where each box is.
import { folded, opsOf, runsOf, storagesOf } from './module_parts.js';

export const ROW = 24;
export const PAD = 8;
const GAP = 5;
// what is open at first: so many levels, of which so many tell something
const DEEPEST = 3;
const TOLD = 2;
const NEARLY_ALL = 0.9;

export class ModuleRows {
  constructor(scene) {
    Object.assign(this, { scene, open: new Set(), unfolded: new Set(), rows: [], height: 0, runs: new Map() });
  }

  // The runs of parts of what is opened, made once.
  runsIn(key, modules) {
    if (!this.runs.has(key)) {
      const withFold = run => ({ run, fold: run.length > 1 ? folded(run) : null });
      this.runs.set(key, runsOf(this.scene, modules).map(withFold));
    }
    return this.runs.get(key);
  }
  top() {
    return this.runsIn('', [0]);
  }
  canOpen(part) {
    return !part.own && !part.ops && this.scene.children(part.modules[0]).length > 0;
  }

  // Parts of one level as they are shown: a fold, or its members one by one with the key of their fold.
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

  // Where to find things among the boxes: the innermost box of every module; boxes of ops of their own.
  index() {
    this.byKey = new Map(this.rows.map((row, k) => [row.part.key, k]));
    this.moduleRow = new Int32Array(this.scene.modules).fill(-1);
    this.opRow = new Map();
    this.storageRow = new Map();
    this.rows.forEach(({ part }, k) => {
      if (!part.own) for (const module of part.modules) this.moduleRow[module] = k;
      if (!part.ops) return;
      for (const op of part.ops) this.opRow.set(op, k);
      for (const storage of part.storages) this.storageRow.set(storage, k);
    });
    for (let module = 1; module < this.scene.modules; module++) {
      if (this.moduleRow[module] < 0) this.moduleRow[module] = this.moduleRow[this.scene.parentOf(module)];
    }
  }
  rowOfOp(op) {
    return this.opRow.get(op) ?? this.moduleRow[this.scene.op_module[op]];
  }
  rowOfStorage(storage) {
    return this.storageRow.get(storage) ?? this.moduleRow[this.scene.storage_module[storage]];
  }

  // The boxes of what is selected or pointed at.
  rowsOf(focus) {
    const found = new Set();
    if (!focus) return found;
    if (focus.type === 'op') found.add(this.rowOfOp(focus.id));
    else if (focus.type === 'storage') found.add(this.rowOfStorage(focus.id));
    else if (focus.row !== undefined && this.byKey.has(focus.row)) found.add(this.byKey.get(focus.row));
    else if (focus.type === 'module') found.add(this.moduleRow[focus.id]);
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
  // Fold the members of a fold, or unfold it.
  refold(row) {
    if (row.part.count > 1) this.unfolded.add(row.part.key);
    else this.unfolded.delete(row.foldKey);
    this.build();
  }

  // Open what a module lies in, and with `own` the module itself, to show its own ops; folds stay folded.
  openTo(module, own = false) {
    const path = [];
    for (let m = module; m > 0; m = this.scene.parentOf(m)) path.unshift(m);
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

  // At first what holds the most is open: that is where the answer lies. A module that holds nearly all of what it lies
  // in, or is around a single one, says little and is not counted.
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

  // What a click on a row selects; the same object each time.
  target(row) {
    const { part } = row;
    if (!part.own && !part.ops && part.modules.length === 1) return { type: 'module', id: part.modules[0] };
    part.target ||= {
      type: 'group',
      id: part.key,
      row: part.key,
      label: part.path + (part.count > 1 ? ` ×${part.count}` : ''),
      storages: storagesOf(this.scene, part),
      ops: opsOf(this.scene, part),
      modules: part.own ? [] : part.modules,
    };
    return part.target;
  }
}
