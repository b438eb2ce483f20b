// Search in the graph: modules by path and class, ops by what they compute and by their line of code, `model.py:7`.
// One pass per keystroke.
import { shortTarget } from '../../data/module_contents.js';
import { countText, plural } from '../../core/units.js';

export class GraphSearch {
  constructor(graphData) {
    this.graphData = graphData;
    this.paths = graphData.module_paths.map(path => path.toLowerCase());
    this.classes = graphData.module_kinds.map(kind => kind.toLowerCase());
    this.paths[0] = this.classes[0] = ''; // the whole model is never a result
    this.targets = graphData.targets.map(target => `${target}\n${shortTarget(target)}`.toLowerCase());
    this.find('');
  }

  // `modules` and `ops` are flags, `places` the modules that match or run a matching op: in order, but modules
  // that match by their own names first.
  find(query) {
    const { graphData } = this;
    const words = query.trim().toLowerCase();
    this.query = words;
    this.modules = new Uint8Array(graphData.modules);
    this.ops = new Uint8Array(graphData.ops);
    this.runs = new Uint8Array(graphData.modules); // modules that run a matching op
    this.places = [];
    this.opList = [];
    // boxes visited: the module of each, the index of the current one, their keys, and where to continue
    Object.assign(this, { trail: [], at: -1, seen: new Set(), next: 0, opAt: -1 });
    if (!words) return;
    const targets = this.targets.map(target => target.includes(words));
    const named = new Uint8Array(graphData.modules);
    this.paths.forEach((path, module) => {
      if (path.includes(words)) named[module] = this.modules[module] = 1;
      else if (this.classes[module].includes(words)) this.modules[module] = 1;
    });
    for (let op = 0; op < graphData.ops; op++) {
      if (!targets[graphData.op_target[op]] && graphData.sourceOf(op).toLowerCase() !== words) continue;
      this.ops[op] = this.runs[graphData.op_module[op]] = 1;
      this.opList.push(op);
    }
    for (let module = 0; module < graphData.modules; module++) {
      if (this.modules[module] || this.runs[module]) this.places.push(module);
    }
    const rank = module => (named[module] ? (this.label(module).includes(words) ? 0 : 1) : 2);
    this.places.sort((a, b) => rank(a) - rank(b) || a - b);
    this.above = new Uint8Array(graphData.modules); // the module or a descendant matches
    for (let module = graphData.modules - 1; module >= 0; module--) {
      if (this.modules[module] || this.runs[module]) this.above[module] = 1;
      if (this.above[module] && module) this.above[graphData.parentOf(module)] = 1;
    }
  }

  // What the other plots mark: the modules and ops that match, and the storages that they own and write.
  get found() {
    const { graphData, opList, modules, places } = this;
    if (!places.length) return null;
    return new Marks(() => {
      const [storages, ops] = [new Set(), new Set(opList)];
      for (const op of opList) for (const storage of graphData.writes(op)) storages.add(storage);
      for (const module of places) {
        if (!modules[module]) continue;
        for (const storage of graphData.moduleStorages(module)) storages.add(storage);
        for (const op of graphData.moduleOps(module)) ops.add(op);
      }
      return { storages, ops };
    });
  }

  label(module) {
    return this.graphData.module_labels[module].toLowerCase();
  }

  get any() {
    return this.query !== '';
  }
  // Whether a part matches itself, and whether something in it does.
  hits({ modules, ops }) {
    return ops
      ? ops.some(op => this.ops[op]) || modules.some(module => this.modules[module])
      : modules.some(module => this.modules[module]);
  }
  holds({ modules, ops }) {
    return ops ? this.hits({ modules, ops }) : modules.some(module => this.above[module]);
  }

  // The number of results: in short form, and in words for screen readers.
  get short() {
    const found = this.places.length ? this.total : 0;
    return !this.any ? '' : found ? `${countText(found)} found` : 'none';
  }
  get words() {
    const found = [
      [this.moduleCount, 'module'],
      [this.opList.length, 'op'],
    ].filter(([count]) => count);
    const list = found.map(([count, noun]) => plural(count, noun)).join(', ');
    return this.any ? `${list || 'nothing'} found` : '';
  }
  get moduleCount() {
    return this.modules.reduce((n, hit) => n + hit, 0);
  }
  get total() {
    return this.moduleCount + this.opList.length;
  }
}

// Sets of storages and ops that are listed when they are first asked for, which is after the key has been answered.
class Marks {
  constructor(list) {
    this.list = list;
  }
  get sets() {
    return (this.listed ||= this.list());
  }
  get storages() {
    return this.sets.storages;
  }
  get ops() {
    return this.sets.ops;
  }
}
