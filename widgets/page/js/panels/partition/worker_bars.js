// What moves at each level, what each worker takes beside the budget, and the partitions that were found.
import { make, say } from '../../core/dom.js';
import { noKernel } from '../../data/action_availability.js';
import { bytesText, changeText, countText, plural } from '../../core/units.js';
import { showWhole, showWorker } from '../../controls/worker_choice.js';
import { WORKER } from '../../data/drawn_step.js';
import { workersOf } from './partition_status.js';

export function workerBars(store, { element, note }) {
  const levels = make('div', { class: 'sw-bars' });
  const memory = make('span', { class: 'sw-note' });
  const workers = make('div', { class: 'sw-bars' });
  const found = make('ul', { class: 'sw-found', 'aria-label': 'Partitions found' });
  const count = make('span', { class: 'sw-note' });
  const release = make('button', { type: 'button', class: 'btn small', text: 'Release pins' });
  release.addEventListener('click', () => store.ask({ do: 'release' }));
  const others = make('h3', {}, 'Found ', count, make('span', { class: 'grow' }), release);
  const box = make(
    'div',
    { class: 'sw-amounts' },
    levels,
    make('h3', {}, 'Memory per worker ', memory),
    workers,
    others,
    found,
  );
  element.append(box);
  workers.addEventListener('keydown', event => moveFocus(event, workers));
  let drawn = '';
  const show = () => {
    const { partition, budget_bytes: budget } = store;
    const shown = partition?.shown;
    const worker = store.drawn === WORKER ? store.shownWorker?.worker : null;
    const peak = store.machine?.step_peak_bytes;
    const key = JSON.stringify([shown, partition?.found, budget, noKernel(store), worker, peak]);
    if (key === drawn) return; // a button that is replaced while it is pressed hears of no click
    drawn = key;
    const place = keptFocus(box);
    box.hidden = !shown;
    say(note, shown ? `${bytesText(shown.bytes)} a step${cost(shown)}` : '');
    if (!shown) return;
    const most = Math.max(...shown.bytes_per_level, 1);
    levels.replaceChildren(
      ...shown.bytes_per_level.map((bytes, level) => bar(`level ${level + 1}`, bytes / most, bytesText(bytes))),
    );
    // as the header says it of the whole step
    const { machine } = store.drawn === WORKER ? store.aside : store;
    say(memory, `${bytesText(machine?.step_peak_bytes ?? shown.single_bytes)} on one device`);
    const top = Math.max(budget ?? 0, ...shown.peaks.map(([, bytes]) => bytes)) * 1.02;
    workers.replaceChildren(
      ...shown.peaks.map(([label, bytes, which]) => {
        // the estimate of the search, or what the graph of a worker takes that is drawn
        const exact = worker !== null && which.length === 1 && which[0] === worker;
        const taken = exact ? (store.machine?.step_peak_bytes ?? bytes) : bytes;
        const row = bar(label, taken / top, (exact ? '' : '≈ ') + bytesText(taken), budget ? budget / top : null);
        row.firstElementChild.replaceWith(workerButton(store, label, which));
        row.classList.toggle('over', budget !== null && bytes > budget);
        row.addEventListener('pointerenter', () => store.set({ worker: which }));
        row.addEventListener('pointerleave', () => store.set({ worker: null }));
        return row;
      }),
    );
    const stop = workers.querySelector('[aria-pressed=true]') ?? workers.querySelector('.sw-worker');
    for (const each of workers.querySelectorAll('.sw-worker')) each.tabIndex = each === stop ? 0 : -1;
    release.hidden = !shown.rows.some(row => row.pins.some(pin => pin !== null));
    release.disabled = !!noKernel(store);
    say(count, partition.found.length > 1 ? plural(partition.found.length, 'partition') : '');
    found.replaceChildren(...partition.found.map(each => foundRow(store, each, shown)));
    place();
  };
  const close = store.on(['partition', 'machine', 'budget_bytes', 'offline', 'drawn', 'shownWorker'], show);
  show();
  return { close };
}

// Arrows go from worker to worker: together they are one tab stop.
function moveFocus(event, workers) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by) return;
  const all = [...workers.querySelectorAll('.sw-worker')];
  event.preventDefault();
  event.stopPropagation();
  all[all.indexOf(event.target) + by]?.focus();
}

// Shows what a worker does in all panels, or the whole step again.
function workerButton(store, label, which) {
  const on = store.drawn === WORKER && which.includes(store.shownWorker?.worker);
  const button = make('button', { type: 'button', class: 'sw-worker', text: label, 'aria-pressed': String(on) });
  const known = store.shownWorker?.storages && which.includes(store.shownWorker.worker);
  button.disabled = !!noKernel(store) && !known;
  button.title = on ? 'Show the whole step again' : `Show the memory and the streams of worker ${which[0]}`;
  button.addEventListener('click', () => (on ? showWhole(store) : showWorker(store, which[0])));
  return button;
}

const cost = ({ added_bytes: added }) => (added ? `, pins add ${bytesText(added)}` : '');

function bar(name, share, text, mark = null) {
  const filled = make('i');
  filled.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  const track = make('span', { class: 'sw-bar-track' }, filled);
  if (mark !== null && mark <= 1) {
    const limit = track.appendChild(make('s'));
    limit.style.left = `${mark * 100}%`;
  }
  return make(
    'div',
    { class: 'sw-bar' },
    make('span', { text: name }),
    track,
    make('span', { class: 'sw-bar-value', text }),
  );
}

// A function that focuses the button that had the focus, among those that replace it.
function keptFocus(box) {
  const { activeElement: active } = box.getRootNode();
  const text = box.contains(active) ? active.textContent : null;
  return () => {
    if (text) [...box.querySelectorAll('button')].find(each => each.textContent === text)?.focus();
  };
}

function foundRow(store, each, shown) {
  const limit = each.limit_bytes === null ? '' : `, in ${bytesText(each.limit_bytes)}`;
  const pins = (each.pins ? `, ${plural(each.pins, 'pin')}` : '') + limit;
  const text = `${countText(workersOf(each))} workers (${each.mesh.join(' × ')})${pins}`;
  const amounts = `${bytesText(each.bytes)} a step, ≈ ${bytesText(each.most_bytes)} each`;
  const other = each.number !== shown.number && shown.bytes > 0 && shown.most_bytes > 0;
  const change = (of, to) => changeText(of / to - 1);
  const beside = `${change(each.bytes, shown.bytes)} bytes, ${change(each.most_bytes, shown.most_bytes)} memory`;
  const button = make(
    'button',
    { type: 'button', 'aria-pressed': String(each.number === shown.number) },
    make('span', { text }),
    make('span', { text: amounts }),
    other ? make('span', { class: 'sw-note', text: beside }) : null,
  );
  button.disabled = !!noKernel(store);
  button.addEventListener('click', () => store.ask({ do: 'show_partition', which: each.number }));
  return make('li', {}, button);
}
