// The state shared by the panels of one widget. Selection and hover are shared by all widgets of one graph in the page.
import { features, tabs } from './features.js';
import { focusOf } from './highlight.js';

const PAGE = Symbol.for('stowage.links');
const SHARED = ['selection', 'hover'];

export class Store {
  // `ask`: sends a request to Python; `link`: widgets with the same one select and point together.
  constructor({ ask = () => {}, link = '' } = {}) {
    this.ask = ask;
    this.listeners = new Set();
    Object.assign(this, {
      graph: null,
      machine: null,
      samples: { points: [] },
      budget: null,
      plan: null,
      loading: null,
      refused: null,
      notice: null,
      offline: false,
      selection: null,
      focus: null,
      hover: null,
      hoverFocus: null,
      cursor: null,
      budget_bytes: null,
      unit: 'time',
      drawn: 'step',
      aside: null,
      tab: tabs()[0]?.name ?? '',
      theme: 0,
    });
    for (const { state } of features()) Object.assign(this, structuredClone(state ?? {}));
    this.peers = link ? peersOf(link) : new Set();
    this.peers.add(this);
  }

  // Set some keys; every listener of a key that changed is called once.
  set(patch, told = false) {
    const changed = new Set();
    for (const key of Object.keys(patch)) {
      if (this[key] !== patch[key]) {
        this[key] = patch[key];
        changed.add(key);
      }
    }
    if (changed.has('selection') || changed.has('graph') || changed.has('plan')) {
      const before = this.focus;
      this.focus = focusOf(this.selection, this.graph, this.plan);
      if (changed.has('selection') || changed.has('graph') || this.focus !== before) changed.add('focus');
    }
    if (changed.has('hover')) {
      this.hoverFocus = focusOf(this.hover, this.graph);
      changed.add('hoverFocus');
    }
    if (!changed.size) return;
    for (const listener of [...this.listeners]) listener(changed);
    const shared = SHARED.filter(key => changed.has(key));
    if (!told && shared.length) {
      const news = Object.fromEntries(shared.map(key => [key, this[key]]));
      for (const peer of this.peers) if (peer !== this) peer.set(news, true);
    }
  }

  // Call `listener(changed)` whenever one of the keys changes; returns a function that removes it.
  on(keys, listener) {
    const wrapped = changed => {
      if (keys.some(key => changed.has(key))) listener(changed);
    };
    this.listeners.add(wrapped);
    return () => this.listeners.delete(wrapped);
  }

  // Select something, or clear the selection if it is selected already.
  select(type, id) {
    const now = this.selection;
    this.set({ selection: now && now.type === type && now.id === id ? null : { type, id } });
  }

  // Hover something, or nothing.
  point(type = null, id = 0) {
    const now = this.hover;
    if (type === null ? !now : now && now.type === type && now.id === id) return;
    this.set({ hover: type === null ? null : { type, id } });
  }

  close() {
    this.listeners.clear();
    this.peers.delete(this);
  }
}

function peersOf(link) {
  const links = (globalThis[PAGE] ||= new Map());
  if (!links.has(link)) links.set(link, new Set());
  return links.get(link);
}
