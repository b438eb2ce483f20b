// Memory: its title with the two choices and the legend, and the map.
import { choice } from './choice.js';
import { make } from './dom.js';
import { KIND_SHORT, kindVariable } from './kinds.js';
import { MemoryMap } from './memory_map.js';

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
    const entry = kind => make('span', {}, swatch(kind), KIND_SHORT[kind]);
    legend.replaceChildren(
      ...KIND_SHORT.map((_, kind) => kind)
        .filter(kind => present.has(kind))
        .map(entry),
    );
  };
  list();
  const [name, space] = [make('h3', { text: 'Memory' }), make('span', { class: 'grow' })];
  section.append(make('div', { class: 'sw-title' }, name, views, legend, space, units));
  const map = new MemoryMap(section.appendChild(make('div')), bench);
  const endLegend = store.on(['graph'], list);
  return () => {
    map.close();
    endViews();
    endUnits();
    endLegend();
  };
}
