// The plot of the graph: its modules as boxes, or its schedule; both handle scrolling, pointing and keys.
import { Plot } from '../../plots/plot.js';
import { GraphSearch } from './search_results.js';
import { Measure } from './module_measure.js';
import { ModulesView } from './modules_view.js';
import { ScheduleView } from './schedule_view.js';
import { colours } from '../../core/theme.js';

const CLICK = 3; // pixels of movement that still count as a click
const LABELS = {
  modules: 'Module graph. Up and down move, right opens, left closes, space unfolds, Enter selects, slash searches.',
  schedule: 'Schedule. Up and down go from op to op, W and S zoom, A and D scroll, slash searches.',
};

export class GraphPlot extends Plot {
  constructor(host, store) {
    super(host, 'graph', LABELS.modules);
    Object.assign(this, { store, view: null, mine: false });
    this.listen();
  }

  colours() {
    return colours(this.host);
  }

  // Another graph, or another plan of it.
  setScene() {
    const { graph } = this.store;
    this.view?.leave();
    this.views = graph && { modules: new ModulesView(this, graph), schedule: new ScheduleView(this, graph) };
    this.search = graph && new GraphSearch(graph);
    this.view = null;
    this.store.set({ found: null });
    if (!graph) return;
    this.setPlan();
    this.setMode();
  }
  setPlan() {
    if (!this.views) return;
    this.measure = new Measure(this.store.graph, this.store.plan);
    for (const view of Object.values(this.views)) view.measured(this.measure);
  }
  setMode() {
    if (!this.views) return;
    const { graphMode } = this.store;
    this.view?.leave();
    this.view = this.views[graphMode];
    this.host.setAttribute('aria-label', LABELS[graphMode]);
    this.view.enter();
  }

  find() {
    if (!this.search) return;
    this.search.find(this.store.query);
    this.store.set({ found: this.search.found });
    this.view.found();
  }

  layout() {
    this.view?.scrollBy(0);
  }
  paint(g, c) {
    if (!this.view) return;
    this.view.paint(g, c);
    this.say(this.view.summary());
  }
  paintOver(g, c) {
    this.view?.paintOver(g, c);
  }

  listen() {
    const { host } = this;
    let drag = null;
    host.addEventListener(
      'wheel',
      event => {
        const focused = document.activeElement === host || event.ctrlKey || event.metaKey;
        if (!focused || !this.view) return; // the page scrolls
        const { scroll, zoom } = this.view;
        if (!this.view.wheel?.(event)) this.view.scrollBy(event.deltaY);
        const moved = scroll !== this.view.scroll || zoom !== this.view.zoom; // at either end the page scrolls
        if (moved || event.ctrlKey || event.metaKey) event.preventDefault();
      },
      { passive: false },
    );
    host.addEventListener('pointerdown', event => {
      if (event.button || !this.view) return;
      drag = { y: event.clientY, moved: false };
      host.setPointerCapture(event.pointerId);
    });
    host.addEventListener('pointermove', event => {
      if (!this.view) return;
      if (!drag) {
        this.view.moved(event);
        return;
      }
      const by = drag.y - event.clientY;
      if (!drag.moved && Math.abs(by) <= CLICK) return;
      drag = { y: event.clientY, moved: true };
      this.view.scrollBy(by);
    });
    host.addEventListener('pointerup', event => {
      if (drag && !drag.moved) this.view.clicked(event);
      drag = null;
    });
    host.addEventListener('pointercancel', () => {
      drag = null;
    });
    host.addEventListener('pointerleave', () => this.view?.left());
    host.addEventListener('focus', () => this.drawOver());
    host.addEventListener('blur', () => this.drawOver());
    host.addEventListener('keydown', event => {
      if (event.metaKey || event.ctrlKey || event.altKey || !this.view?.key(event)) return;
      event.preventDefault();
      event.stopPropagation();
    });
  }
}
