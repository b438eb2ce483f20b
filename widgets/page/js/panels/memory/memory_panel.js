// The memory panel: title with the two choices, legend, and map.
import { registerFeature } from '../../core/features.js';
import { choice } from '../../controls/choice.js';
import { make, say } from '../../core/dom.js';
import { KIND_LABELS, kindVariable } from '../../core/kinds.js';
import { MemoryMap } from './memory_map.js';
import { withinOther } from '../../data/budget_answers.js';

const VIEWS = [
  ['address', 'Address'],
  ['kind', 'By kind'],
];
const UNITS = [
  ['time', 'Time'],
  ['op', 'Ops'],
];

export function memoryPanel(section, bench) {
  const { store } = bench;
  const [views, endViews] = choice(store, 'memoryView', VIEWS, 'What the map shows');
  const [units, endUnits] = choice(store, 'unit', UNITS, 'Unit of the time axis');
  const legend = make('div', { class: 'legend' });
  const list = () => {
    const present = new Set(store.graph?.storage_kind);
    const swatch = kind => make('i', { class: 'k', style: `background:${kindVariable(kind)}` });
    const entry = kind => make('span', {}, swatch(kind), KIND_LABELS[kind].replace('Optimizer state', 'Optimizer'));
    const recomputed = store.plan?.residency_recomputed.some(Boolean);
    const again = () => make('span', {}, make('i', { class: 'k striped' }), 'recomputed');
    legend.replaceChildren(
      ...KIND_LABELS.map((_, kind) => kind)
        .filter(kind => present.has(kind))
        .map(entry),
      ...(recomputed ? [again()] : []),
    );
  };
  list();
  const note = make('span', { class: 'note' });
  section.append(make('div', { class: 'sw-title' }, make('h3', { text: 'Memory' }), views, note, legend, units));
  const tell = () => {
    say(note, store.plan?.placeholder ? 'no plan fits; shown without swapping' : withinOther(store));
    note.title = store.plan?.summary ?? '';
  };
  tell();
  const map = new MemoryMap(section.appendChild(make('div')), bench);
  const ends = [
    endViews,
    endUnits,
    store.on(['graph', 'plan'], list),
    store.on(['plan', 'budget', 'budget_bytes'], tell),
  ];
  return () => {
    map.close();
    for (const end of ends) end();
  };
}

registerFeature({
  name: 'memory',
  label: 'Memory',
  panel: memoryPanel,
  state: { memoryView: 'address' },
  help: [[['+', '−'], 'zoom addresses (also Shift-wheel)']],
});
