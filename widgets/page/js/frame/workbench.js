// The frame: one section per requested panel, one time axis, the keys, the theme, and the placeholders shown while
// there is no graph.
import '../panels/registry.js';
import { make, say } from '../core/dom.js';
import { features } from '../core/features.js';
import { attachKeys } from './keys.js';
import { viewNumber } from '../core/unique_ids.js';
import { attachEmptyStates } from './empty_states.js';
import { tabsPanel } from './tabs_panel.js';
import { forgetColours } from '../core/theme.js';
import { TimeAxis } from '../plots/time_axis.js';

const THEMED = ['data-jp-theme-light', 'data-jp-theme-name', 'class', 'theme'];

// Build the panels into `el`; returns a function that removes them. Each panel gets `bench`: root, store and time axis;
// `built` gets it after all of them.
export function mount(el, store, panels, built = () => {}) {
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
  built(bench);
  return () => {
    for (const close of closing) close?.();
    for (const host of root.querySelectorAll('.plot')) host.plot?.close();
    root.remove();
  };
}

// Name, label and builder of each section. Panels that have a tab share one section when there are several.
function sections(panels) {
  const wanted = features().filter(({ name }) => panels.includes(name));
  const tabbed = wanted.filter(({ tab }) => tab);
  const alone = tabbed.length > 1 ? wanted.filter(({ tab }) => !tab) : wanted;
  const list = alone.map(({ name, label, panel }) => [name, label, panel]);
  if (tabbed.length < 2) return list;
  const label = together(tabbed.map(each => each.label));
  return [...list, ['bottom', label, (section, bench) => tabsPanel(section, bench, tabbed, label)]];
}

// `Search and run`.
function together(labels) {
  const [first, ...rest] = labels;
  const all = [first, ...rest.map(label => label.toLowerCase())];
  return `${all.slice(0, -1).join(', ')} and ${all.at(-1)}`;
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
