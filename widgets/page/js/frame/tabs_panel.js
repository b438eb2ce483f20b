// Search and run share one place, as tabs in the pattern of the ARIA guide: one tab stop, arrow keys between them.
import { make, say } from '../core/dom.js';
import { runButton, searchButton } from '../controls/main_buttons.js';
import { unique } from '../core/names.js';
import { runPanel } from '../panels/run/run_panel.js';
import { searchPanel } from '../panels/search/search_panel.js';
import { runStatus, searchStatus } from '../controls/status.js';

const TABS = [
  ['search', 'Search', searchPanel, searchStatus, searchButton],
  ['run', 'Run', runPanel, runStatus, runButton],
];
const WATCHED = ['tab', 'search', 'run', 'budget', 'budget_bytes'];

export function tabsPanel(section, bench) {
  const { store } = bench;
  const group = unique('sw-tabs');
  const list = make('div', { class: 'sw-tabs', role: 'tablist', 'aria-label': 'Search and run' });
  const status = make('span', { class: 'sw-status' });
  const bar = make('div', { class: 'sw-tab-bar' }, list, status);
  section.append(bar);
  const closing = [];
  const tabs = TABS.map(([name, label, fill, , button]) => {
    const id = `${group}-${name}`;
    const tab = make('button', { type: 'button', role: 'tab', id, 'aria-controls': `${id}-panel`, text: label });
    const panel = make('div', {
      class: `sw-tab-panel sw-${name}-tab`,
      role: 'tabpanel',
      id: `${id}-panel`,
      'aria-labelledby': id,
    });
    list.append(tab);
    section.append(panel);
    closing.push(fill(panel, bench));
    if (bench.root.querySelector('.sw-header')) return { name, tab, panel };
    const { element, close } = button(store);
    element.classList.add('small');
    bar.append(element);
    closing.push(close);
    return { name, tab, panel };
  });
  list.addEventListener('click', event => {
    const found = tabs.find(({ tab }) => tab === event.target);
    if (found) store.set({ tab: found.name });
  });
  list.addEventListener('keydown', event => move(event, tabs, store));
  const show = changed => {
    for (const { name, tab, panel } of tabs) {
      const on = name === store.tab;
      tab.setAttribute('aria-selected', on);
      tab.tabIndex = on ? 0 : -1;
      panel.hidden = !on;
      // a hidden panel is not painted, so it may be out of date
      if (on && changed?.has('tab')) for (const host of panel.querySelectorAll('.plot')) host.plot.draw();
    }
    say(status, TABS.find(([name]) => name === store.tab)[3](store));
  };
  const busy = {};
  // a search or run that starts comes to the front, wherever it was requested
  const follow = () => {
    for (const [name] of TABS) {
      const before = busy[name];
      busy[name] = /planning|running/.test(store[name]?.state);
      if (busy[name] && !before) store.set({ tab: name });
    }
  };
  closing.push(store.on(['search', 'run'], follow), store.on(WATCHED, show));
  show();
  return () => closing.forEach(close => close());
}

function move(event, tabs, store) {
  const now = tabs.findIndex(({ name }) => name === store.tab);
  const last = tabs.length - 1;
  const to = { ArrowRight: now < last ? now + 1 : 0, ArrowLeft: now ? now - 1 : last, Home: 0, End: last }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  store.set({ tab: tabs[to].name });
  tabs[to].tab.focus();
}
