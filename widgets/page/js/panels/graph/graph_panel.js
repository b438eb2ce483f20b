// The graph panel: the choice of view, the search field, and the plot.
import { registerFeature } from '../../core/features.js';
import { make, say } from '../../core/dom.js';
import { partitionLegend } from '../../controls/partition_legend.js';
import { GraphPlot } from './graph_plot.js';

const MODES = [
  ['modules', 'Modules'],
  ['schedule', 'Schedule'],
];
const METRICS = [
  ['memory', 'by memory'],
  ['time', 'by time'],
  ['kind', 'by kind'],
  ['partition', 'by partition'],
];

export function graphPanel(section, { store }) {
  const modes = make('div', { class: 'seg', role: 'group', 'aria-label': 'Show' });
  for (const [mode, label] of MODES) {
    const choose = () => store.set({ graphMode: mode });
    modes.append(make('button', { type: 'button', 'data-mode': mode, text: label, click: choose }));
  }
  const field = make('input', {
    type: 'search',
    class: 'find',
    placeholder: 'Find /',
    'aria-label': 'Search modules and ops',
    spellcheck: 'false',
    autocomplete: 'off',
  });
  const count = make('span', { class: 'note found', 'aria-hidden': 'true' });
  const spoken = make('span', { class: 'sr', role: 'status' });
  const metric = make('select', { 'aria-label': 'Colour by' });
  for (const [value, label] of METRICS) metric.append(make('option', { value, text: label }));
  const host = make('div');
  const title = make('div', { class: 'sw-title' }, make('h3', { text: 'Graph' }), modes, field, count, spoken, metric);
  const legend = partitionLegend(store);
  section.append(title, host, legend.element);
  const plot = new GraphPlot(host, store);

  field.addEventListener('input', () => store.set({ query: field.value }));
  field.addEventListener('keydown', event => {
    const by = { ArrowDown: 1, ArrowUp: -1, Enter: event.shiftKey ? -1 : 1 }[event.key];
    if (!by || !plot.search?.any) return;
    event.preventDefault();
    event.stopPropagation();
    plot.view.stepFound(by);
    showFound();
    plot.draw();
  });
  metric.addEventListener('change', () => store.set({ metric: metric.value }));

  const showFound = () => {
    say(count, plot.search?.short || '');
    const where = plot.search?.places.length ? ': ' + plot.view.foundName() : '';
    say(spoken, plot.search?.any ? plot.search.words + where : '');
  };
  const showState = () => {
    for (const button of modes.children) button.setAttribute('aria-pressed', button.dataset.mode === store.graphMode);
    metric.value = store.metric;
    if (field.value !== store.query) field.value = store.query;
  };
  const changed = keys => {
    if (keys.has('graph')) plot.setScene();
    else if (keys.has('plan')) plot.setPlan();
    if (keys.has('graphMode')) plot.setMode();
    if (keys.has('query')) plot.find();
    if (keys.has('metric') || keys.has('partition')) plot.view?.tell?.();
    if (keys.has('focus') && !plot.mine) plot.view?.follow(store.focus);
    else if (keys.has('focus')) plot.view?.tell?.();
    showState();
    showFound();
    plot.draw();
  };
  const stops = [
    store.on(['graph', 'plan', 'graphMode', 'metric', 'query', 'focus', 'theme', 'partition'], changed),
    store.on(['hoverFocus'], () => plot.drawOver()),
  ];
  changed(new Set(['graph']));
  return () => [...stops, legend.close].forEach(stop => stop());
}

function clearQuery({ store }) {
  if (!store.query) return false;
  store.set({ query: '' });
  return true;
}

function focusSearch({ root }) {
  const field = root.querySelector('.sw-graph input[type="search"]');
  field?.focus();
  field?.select();
  return Boolean(field);
}

registerFeature({
  name: 'graph',
  label: 'Graph',
  panel: graphPanel,
  state: { graphMode: 'modules', metric: 'memory', query: '', found: null },
  keys: { Escape: clearQuery, '/': focusSearch },
  help: [[['/'], 'search modules, ops and lines of code; ↑ ↓ go through what is found']],
});
