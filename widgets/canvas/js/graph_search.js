// What is searched for in the graph: modules by path and class, ops by what they compute. One pass per key pressed.
import { shortTarget } from './module_parts.js';
import { countText, plural } from './units.js';

export class GraphSearch {
  constructor(scene) {
    this.scene = scene;
    this.paths = scene.module_paths.map(path => path.toLowerCase());
    this.classes = scene.module_kinds.map(kind => kind.toLowerCase());
    this.paths[0] = this.classes[0] = ''; // the whole model is no find
    this.targets = scene.targets.map(target => `${target}\n${shortTarget(target)}`.toLowerCase());
    this.find('');
  }

  // `modules` and `ops` are flags, `places` the modules that are found or run what is found: in order, but those
  // first that are found by their own names.
  find(query) {
    const { scene } = this;
    const words = query.trim().toLowerCase();
    this.query = words;
    this.modules = new Uint8Array(scene.modules);
    this.ops = new Uint8Array(scene.ops);
    this.runs = new Uint8Array(scene.modules); // modules that run an op which is found
    this.places = [];
    this.opList = [];
    // boxes gone through: the module of each, the place of the present one, their keys, and where to look on
    Object.assign(this, { trail: [], at: -1, seen: new Set(), next: 0, opAt: -1 });
    if (!words) return;
    const targets = this.targets.map(target => target.includes(words));
    const named = new Uint8Array(scene.modules);
    this.paths.forEach((path, module) => {
      if (path.includes(words)) named[module] = this.modules[module] = 1;
      else if (this.classes[module].includes(words)) this.modules[module] = 1;
    });
    for (let op = 0; op < scene.ops; op++) {
      if (!targets[scene.op_target[op]]) continue;
      this.ops[op] = this.runs[scene.op_module[op]] = 1;
      this.opList.push(op);
    }
    for (let module = 0; module < scene.modules; module++) {
      if (this.modules[module] || this.runs[module]) this.places.push(module);
    }
    const rank = module => (named[module] ? (this.label(module).includes(words) ? 0 : 1) : 2);
    this.places.sort((a, b) => rank(a) - rank(b) || a - b);
    this.above = new Uint8Array(scene.modules); // something is found in or below
    for (let module = scene.modules - 1; module >= 0; module--) {
      if (this.modules[module] || this.runs[module]) this.above[module] = 1;
      if (this.above[module] && module) this.above[scene.parentOf(module)] = 1;
    }
  }

  label(module) {
    return this.scene.module_labels[module].toLowerCase();
  }

  get any() {
    return this.query !== '';
  }
  // Whether a part is found itself, and whether something in it is.
  hits({ modules, ops }) {
    return ops
      ? ops.some(op => this.ops[op]) || modules.some(module => this.modules[module])
      : modules.some(module => this.modules[module]);
  }
  holds({ modules, ops }) {
    return ops ? this.hits({ modules, ops }) : modules.some(module => this.above[module]);
  }

  // How much was found: in short, and in words for those who listen.
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
