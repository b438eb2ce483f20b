// The captured step: ops, storages and modules as columns, with lists derived from them.
import { KINDS } from '../core/kinds.js';

export class GraphData {
  // `message`: of kind `graph`, columns unpacked.
  constructor(message) {
    Object.assign(this, message);
    this.ops = this.op_target.length;
    this.storages = this.storage_kind.length;
    this.modules = this.module_labels.length;
    this.uses_ = grouped(this.storages, this.ops, op => this.touches(op));
    this.readers_ = grouped(this.storages, this.ops, op => this.reads(op));
    this.writers_ = grouped(this.storages, this.ops, op => this.writes(op));
    const parents = m => (this.module_parent[m] < 0 ? [] : [this.module_parent[m]]);
    this.children_ = grouped(this.modules, this.modules, parents);
    this.ownOps = grouped(this.modules, this.ops, op => [this.op_module[op]]);
    this.ownStorages = grouped(this.modules, this.storages, s => [this.storage_module[s]]);
    this.forwardOps = this.op_phase.reduce((n, phase) => n + (phase === 0), 0);
    this.backwardOps = this.op_phase.reduce((n, phase) => n + (phase === 1), 0);
    // the loss is the last forward op before the backward pass
    this.lossOp = this.backwardOps ? this.op_phase.lastIndexOf(0, this.op_phase.indexOf(1)) : -1;
  }

  // Storages that an op reads, writes or uses as workspace; those that it reads come first.
  touches(op) {
    return this.op_touch.subarray(this.op_touch_start[op], this.op_touch_start[op + 1]);
  }
  reads(op) {
    const a = this.op_touch_start[op];
    return this.op_touch.subarray(a, a + this.op_read_count[op]);
  }
  writes(op) {
    return this.op_touch.subarray(this.op_touch_start[op] + this.op_read_count[op], this.op_touch_start[op + 1]);
  }
  // Ops that touch a storage, in captured order.
  uses(storage) {
    return this.uses_.of(storage);
  }
  readers(storage) {
    return this.readers_.of(storage);
  }
  // Those that write it, or use it as workspace.
  writers(storage) {
    return this.writers_.of(storage);
  }
  children(module) {
    return this.children_.of(module);
  }

  targetOf(op) {
    return this.targets[this.op_target[op]];
  }
  // `aten.convolution.default` as `convolution`.
  shortTarget(op) {
    return this.targetOf(op)
      .replace(/^(aten|planner|stowage)\./, '')
      .replace(/\.default$/, '');
  }
  // Shape and dtype of an op's first output, and of a storage; '' if there is none.
  opLayout(op) {
    return this.layouts[this.op_layout[op]];
  }
  storageLayout(storage) {
    return this.layouts[this.storage_layout[storage]];
  }
  // The line of the model's code that runs an op, such as `model.py:7`; '' if unknown.
  sourceOf(op) {
    return this.sources[this.op_source[op]];
  }
  // The line that makes a storage or, if it exists before the step, first uses it.
  sourceOfStorage(storage) {
    return this.sources[this.storage_source[storage]];
  }
  opName(op) {
    return this.module_paths[this.op_module[op]] || this.shortTarget(op);
  }
  // Its module and what it computes.
  opTitle(op) {
    return `${this.module_paths[this.op_module[op]]} ${this.shortTarget(op)}`.trim();
  }
  storageName(storage) {
    return this.storage_names[storage];
  }
  kindOf(storage) {
    return this.storage_kind[storage];
  }
  kindName(storage) {
    return KINDS[this.storage_kind[storage]];
  }
  bytesOf(storage) {
    return this.storage_bytes[storage];
  }
  path(module) {
    return this.module_paths[module] || this.name;
  }
  parentOf(module) {
    return this.module_parent[module];
  }

  // Whether `module` is `above` or inside it; modules come parents first, so the descendants of a module follow it.
  inside(module, above) {
    while (module > above) module = this.module_parent[module];
    return module === above;
  }

  // The child of `above` that is or contains a module; -1 for `above` itself.
  childAbove(module, above) {
    if (module === above) return -1;
    while (this.module_parent[module] !== above) module = this.module_parent[module];
    return module;
  }

  // Ops of a module and of everything below it, ascending.
  moduleOps(module) {
    return this.gathered(module, this.ownOps);
  }
  moduleStorages(module) {
    return this.gathered(module, this.ownStorages);
  }
  gathered(module, lists) {
    const found = [];
    const pending = [module];
    while (pending.length) {
      const m = pending.pop();
      for (const x of lists.of(m)) found.push(x);
      pending.push(...this.children(m));
    }
    return Int32Array.from(found).sort();
  }

  // The part of the model just below the root that a module belongs to; the root for its own ops.
  stageOf(module) {
    while (module > 0 && this.module_parent[module] > 0) module = this.module_parent[module];
    return module;
  }
}

// Lists of numbers by key, in two arrays: `keysOf(i)` names the keys under which `i` is listed.
export function grouped(keys, items, keysOf) {
  const start = new Int32Array(keys + 1);
  for (let i = 0; i < items; i++) for (const key of keysOf(i)) start[key + 1]++;
  for (let key = 0; key < keys; key++) start[key + 1] += start[key];
  const item = new Int32Array(start[keys]);
  const next = start.slice();
  for (let i = 0; i < items; i++) for (const key of keysOf(i)) item[next[key]++] = i;
  return { of: key => item.subarray(start[key], start[key + 1]) };
}
