// What the colours of the graph by partition mean: how tensors are split, level by level.
import { make } from '../core/dom.js';
import { colours, shade } from '../core/theme.js';
import { waysOf } from '../data/partition_ways.js';
import { plural } from '../core/units.js';

const MOST = 4; // ways with an entry; more are counted

export function partitionLegend(store) {
  const element = make('div', { class: 'legend sw-graph-legend', role: 'note', 'aria-label': 'How tensors are split' });
  const show = () => {
    element.hidden = store.metric !== 'partition';
    if (element.hidden) return;
    const { tones } = waysOf(store);
    const c = colours(element);
    const entries = [...tones].slice(0, MOST).map(([words, tone]) => {
      const swatch = make('i', { class: 'k' });
      swatch.style.background = shade(c, tone);
      return make('span', {}, swatch, words);
    });
    const rest = tones.size - entries.length;
    if (rest > 0) entries.push(make('span', { text: plural(rest, 'other way') }));
    const levels = store.partition?.shown?.mesh.map((_, level) => `level ${level + 1}`) ?? [];
    element.title = levels.join(' / ');
    if (!tones.size) entries.push(make('span', { text: 'not split yet: Partition finds how' }));
    element.replaceChildren(...entries);
  };
  const close = store.on(['metric', 'partition', 'graph', 'theme', 'shownWorker'], show);
  show();
  return { element, close };
}
