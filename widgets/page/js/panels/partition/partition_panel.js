// The partition panel: how tensors are split, which worker has which block, what moves, and what each worker takes.
import { column } from '../../controls/column.js';
import { make, say } from '../../core/dom.js';
import { bytesText } from '../../core/units.js';
import { storageOfWhole } from '../../data/drawn_step.js';
import { BlocksPlot } from './blocks_plot.js';
import { splitsTable } from './splits_table.js';
import { workerBars } from './worker_bars.js';

const WORKERS = [2, 3, 4, 6, 8, 12, 16, 32, 64];

// `button`: makes the one that starts and stops the search.
export function partitionPanel(section, bench, button) {
  const { store } = bench;
  const [workers, act] = [workersChoice(store), button(store, !bench.root.querySelector('.sw-header'))];
  act.element.classList.add('small');
  const splits = column('Splits');
  splits.element.querySelector('h3').append(make('span', { class: 'grow' }), workers.element, act.element);
  splits.element.classList.add('sw-splits');
  const told = make('p', { class: 'sw-stopped', role: 'status' });
  const table = splitsTable(store);
  splits.element.append(told, table.element);
  const host = make('div');
  const empty = make('div', { class: 'sw-empty' }, make('p', { text: 'The blocks of a tensor on the workers.' }));
  const blocks = column('Blocks', host, empty);
  const amounts = column('Bytes per level');
  const bars = workerBars(store, amounts);
  section.append(make('div', { class: 'sw-cols sw-partition-cols' }, splits.element, blocks.element, amounts.element));
  const plot = new BlocksPlot(host, store);
  const show = () => {
    const { partition, blocks: shown } = store;
    say(splits.note, partition?.shown ? 'choose a split to pin it' : '');
    const failed = store.workerNews?.state === 'failed' ? store.workerNews.sentence : '';
    const sentence = failed || (partition && partition.state !== 'running' ? partition.sentence : '');
    told.hidden = !sentence;
    say(told, sentence);
    host.hidden = !shown;
    empty.hidden = !!shown;
    say(blocks.note, shown ? `${shown.name}, ${bytesText(shown.bytes)}` : '');
    blocks.note.title = shown?.name ?? '';
  };
  const stops = [store.on(['partition', 'blocks', 'graph', 'workerNews'], show), store.on(['focus'], () => follow(store))];
  show();
  return () => {
    for (const stop of stops) stop();
    for (const part of [workers, act, table, bars, plot]) part.close();
  };
}

// What is selected anywhere shows its blocks here.
function follow(store) {
  const { focus, blocks, partition } = store;
  if (!partition?.shown || focus?.type !== 'storage') return;
  const storage = storageOfWhole(store, focus.id);
  if (storage >= 0 && blocks?.storage !== storage) store.ask({ do: 'blocks', storage });
}

function workersChoice(store) {
  const select = make('select', { 'aria-label': 'Workers' });
  select.addEventListener('change', () => {
    store.set({ partitionWorkers: Number(select.value) });
    store.ask({ do: 'partition', workers: store.partitionWorkers });
  });
  const show = () => {
    const now = store.partitionWorkers;
    const counts = WORKERS.includes(now) ? WORKERS : [...WORKERS, now].sort((a, b) => a - b);
    if (select.options.length !== counts.length) {
      select.replaceChildren(...counts.map(count => make('option', { value: count, text: `${count} workers` })));
    }
    select.value = now;
    select.disabled = store.offline === 'static' || !store.graph;
  };
  const close = store.on(['partitionWorkers', 'graph', 'offline'], show);
  show();
  return { element: select, close };
}
