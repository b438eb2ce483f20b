// The partition panel: how tensors are split, which worker has which block, what moves, and what each worker takes.
import { column } from '../../controls/column.js';
import { make, say } from '../../core/dom.js';
import { bytesText } from '../../core/units.js';
import { storageOfWhole } from '../../data/drawn_step.js';
import { noKernel } from '../../data/action_availability.js';
import { BlocksPlot } from './blocks_plot.js';
import { splitsTable } from './splits_table.js';
import { workerBars } from './worker_bars.js';

const WORKERS = [2, 3, 4, 6, 8, 12, 16, 32, 64];

// `button`: makes the one that starts and stops the search.
export function partitionPanel(section, bench, button) {
  const { store } = bench;
  const [workers, memory] = [workersChoice(store), memoryChoice(store)];
  const act = button(store, !bench.root.querySelector('.sw-header'));
  act.element.classList.add('small');
  const splits = column('Splits');
  const choices = [workers, memory, act].map(each => each.element);
  splits.element.querySelector('h3').append(make('span', { class: 'grow' }), ...choices);
  splits.element.classList.add('sw-splits', 'sw-choosing');
  splits.note.classList.add('medium-hide');
  const words = make('span', { role: 'status' });
  const use = make('button', { type: 'button', class: 'btn small' });
  use.addEventListener('click', () => askPartition(store, store.partition.least_bytes));
  const told = make('p', { class: 'sw-stopped' }, words, ' ', use);
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
    say(words, sentence);
    use.hidden = !partition?.least_bytes || !!noKernel(store);
    if (!use.hidden) say(use, `Allow ${bytesText(partition.least_bytes)}`);
    host.hidden = !shown;
    empty.hidden = !!shown;
    say(blocks.note, shown ? `${shown.name}, ${bytesText(shown.bytes)}` : '');
    blocks.note.title = shown?.name ?? '';
  };
  const stops = [
    store.on(['partition', 'blocks', 'graph', 'workerNews'], show),
    store.on(['focus'], () => follow(store)),
  ];
  show();
  return () => {
    for (const stop of stops) stop();
    for (const part of [workers, memory, act, table, bars, plot]) part.close();
  };
}

// What is selected anywhere shows its blocks here.
function follow(store) {
  const { focus, blocks, partition } = store;
  if (!partition?.shown || focus?.type !== 'storage') return;
  const storage = storageOfWhole(store, focus.id);
  if (storage >= 0 && blocks?.storage !== storage) store.ask({ do: 'blocks', storage });
}

const askPartition = (store, memory) => store.ask({ do: 'partition', workers: store.partitionWorkers, memory });

// What each worker may take: copies that save bytes are made as far as there is room.
function memoryChoice(store) {
  const select = make('select', {
    'aria-label': 'Memory of a worker',
    title: 'With more memory than splitting takes, tensors are copied where that saves bytes',
  });
  select.addEventListener('change', () =>
    askPartition(store, /^\d+$/.test(select.value) ? Number(select.value) : select.value),
  );
  let listed = '';
  const show = () => {
    const limit = store.partition?.limit_bytes ?? null;
    const device = store.machine?.device_bytes || null;
    const choices = [
      ['none', 'least memory'],
      ['budget', 'within budget'],
    ];
    if (device) choices.push([String(device), 'within device']);
    if (limit !== null && limit !== device) choices.push([String(limit), `in ${bytesText(limit)}`]);
    if (listed !== choices.join()) {
      listed = choices.join();
      select.replaceChildren(...choices.map(([value, text]) => make('option', { value, text })));
    }
    select.value = limit === null ? 'none' : String(limit);
    select.disabled = store.offline === 'static' || !store.graph;
  };
  const close = store.on(['partition', 'machine', 'graph', 'offline'], show);
  show();
  return { element: select, close };
}

function workersChoice(store) {
  const select = make('select', { 'aria-label': 'Workers' });
  select.addEventListener('change', () => {
    store.set({ partitionWorkers: Number(select.value) });
    askPartition(store);
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
