// The frame: one section per requested panel, one time axis, the keys, the theme, and the placeholders shown while
// there is no graph.
import { make, say } from '../core/dom.js';
import { attachKeys } from './keys.js';
import { graphPanel } from '../panels/graph/graph_panel.js';
import { headerPanel } from '../header/header_panel.js';
import { holdersPanel } from '../panels/selection/holders_panel.js';
import { memoryPanel } from '../panels/memory/memory_panel.js';
import { viewNumber } from '../core/names.js';
import { runPanel } from '../panels/run/run_panel.js';
import { searchPanel } from '../panels/search/search_panel.js';
import { selectionPanel } from '../panels/selection/selection_panel.js';
import { attachEmptyStates } from './empty_states.js';
import { streamsPanel } from '../panels/streams/streams_panel.js';
import { tabsPanel } from './tabs_panel.js';
import { forgetColours } from '../core/theme.js';
import { TimeAxis } from '../plots/time_axis.js';

// Panels by name, in reading order: label and builder of the section. Search and run share one when both are shown.
const PANELS = {
  header: ['Step, budget and verdict', headerPanel],
  graph: ['Graph', graphPanel],
  holders: ['Who holds memory', holdersPanel],
  memory: ['Memory', memoryPanel],
  streams: ['Streams', streamsPanel],
  selection: ['Selection', selectionPanel],
  search: ['Search', searchPanel],
  run: ['Run', runPanel],
};
const THEMED = ['data-jp-theme-light', 'data-jp-theme-name', 'class', 'theme'];

// Build the panels into `el`; returns a function that removes them. Each panel gets `bench`: root, store and time axis.
export function mount(el, store, panels) {
  const root = el.appendChild(document.createElement('div'));
  root.className = 'sw';
  root.dataset.panels = panels.length > 1 ? 'many' : 'one';
  const bench = { root, store, axis: new TimeAxis() };
  const [number, giveBack] = viewNumber();
  const closing = [watchTheme(bench), followPlan(bench), attachEmptyStates(bench), giveBack];
  if (!panels.includes('header')) closing.push(heading(bench));
  const grid = root.appendChild(document.createElement('div'));
  grid.className = 'sw-grid';
  for (const [name, label, fill] of sections(panels)) {
    const section = grid.appendChild(document.createElement('section'));
    section.className = `sw-panel sw-${name}`;
    section.setAttribute('aria-label', number > 1 ? `${label}, view ${number}` : label);
    closing.push(fill(section, bench));
  }
  closing.push(attachKeys(bench));
  return () => {
    for (const close of closing) close?.();
    for (const host of root.querySelectorAll('.plot')) host.plot?.close();
    root.remove();
  };
}

function sections(panels) {
  const wanted = Object.entries(PANELS).filter(([name]) => panels.includes(name));
  const both = panels.includes('search') && panels.includes('run');
  const list = wanted.map(([name, [label, fill]]) => [name, label, fill]);
  if (!both) return list;
  return [...list.filter(([name]) => name !== 'search' && name !== 'run'), ['bottom', 'Search and run', tabsPanel]];
}

// Without the header, the name of the step is a heading for screen readers only.
function heading({ root, store }) {
  const name = root.appendChild(make('h2', { class: 'sr', hidden: true }));
  return store.on(['graph'], () => {
    say(name, store.graph?.name ?? '');
    name.hidden = !name.textContent;
  });
}

// The axis follows the plan and the unit; the panels follow the axis.
function followPlan({ store, axis }) {
  const stops = [
    store.on(['plan'], () => {
      if (store.plan) axis.setPlan(store.plan);
    }),
    store.on(['unit'], () => axis.setUnit(store.unit)),
  ];
  return () => stops.forEach(stop => stop());
}

// A notebook signals a change of theme by attributes of its body, other hosts by attributes of the document.
function watchTheme({ root, store }) {
  const renew = () => {
    forgetColours(root);
    store.set({ theme: store.theme + 1 });
  };
  const observer = new MutationObserver(renew);
  for (const element of [document.body, document.documentElement]) {
    observer.observe(element, { attributes: true, attributeFilter: THEMED });
  }
  const scheme = window.matchMedia('(prefers-color-scheme: dark)');
  scheme.addEventListener('change', renew);
  return () => {
    observer.disconnect();
    scheme.removeEventListener('change', renew);
  };
}
