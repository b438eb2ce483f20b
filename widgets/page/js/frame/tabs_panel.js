// Panels that start and stop work share one place, as tabs in the pattern of the ARIA guide: one tab stop, arrow keys
// between them.
import { make, say } from '../core/dom.js';
import { unique } from '../core/unique_ids.js';

// `shown`: the features that share the place, and what it is called.
export function tabsPanel(section, bench, shown, label) {
  const { store } = bench;
  const group = unique('sw-tabs');
  const list = make('div', { class: 'sw-tabs', role: 'tablist', 'aria-label': label });
  const status = make('span', { class: 'sw-status' });
  const bar = make('div', { class: 'sw-tab-bar' }, list, status);
  section.append(bar);
  const closing = [];
  const tabs = shown.map(({ name, label: text, panel: fill, tab: feature }) => {
    const id = `${group}-${name}`;
    const tab = make('button', { type: 'button', role: 'tab', id, 'aria-controls': `${id}-panel`, text });
    const panel = make('div', {
      class: `sw-tab-panel sw-${name}-tab`,
      role: 'tabpanel',
      id: `${id}-panel`,
      'aria-labelledby': id,
    });
    list.append(tab);
    section.append(panel);
    closing.push(fill(panel, bench));
    if (!feature.button || bench.root.querySelector('.sw-header')) return { name, tab, panel };
    const { element, close } = feature.button(store);
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
    say(status, shown.find(({ name }) => name === store.tab)?.tab.status(store) ?? '');
  };
  const busy = {};
  // work that starts comes to the front, wherever it was requested
  const follow = () => {
    for (const { name, tab } of shown) {
      const before = busy[name];
      busy[name] = tab.busy(store);
      if (busy[name] && !before) store.set({ tab: name });
    }
  };
  const names = shown.map(({ name }) => name);
  closing.push(store.on(names, follow), store.on(['tab', ...names, 'workerNews', 'budget', 'budget_bytes'], show));
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
