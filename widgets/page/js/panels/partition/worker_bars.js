// What moves at each level, what each worker takes beside the budget, and the partitions that were found.
import { make, say } from '../../core/dom.js';
import { noKernel } from '../../data/action_availability.js';
import { bytesText, countText, plural } from '../../core/units.js';
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
  let drawn = '';
  const show = () => {
    const { partition, budget_bytes: budget } = store;
    const shown = partition?.shown;
    const key = JSON.stringify([shown, partition?.found, budget, noKernel(store)]);
    if (key === drawn) return; // a button that is replaced while it is pressed hears of no click
    drawn = key;
    box.hidden = !shown;
    say(note, shown ? `${bytesText(shown.bytes)} a step${cost(shown)}` : '');
    if (!shown) return;
    const most = Math.max(...shown.bytes_per_level, 1);
    levels.replaceChildren(
      ...shown.bytes_per_level.map((bytes, level) => bar(`level ${level + 1}`, bytes / most, bytesText(bytes))),
    );
    say(memory, `${bytesText(shown.single_bytes)} on one device`);
    const top = Math.max(budget ?? 0, ...shown.peaks.map(([, bytes]) => bytes)) * 1.02;
    workers.replaceChildren(
      ...shown.peaks.map(([label, bytes, which]) => {
        const row = bar(label, bytes / top, bytesText(bytes), budget ? budget / top : null);
        row.classList.toggle('over', budget !== null && bytes > budget);
        row.addEventListener('pointerenter', () => store.set({ worker: which }));
        row.addEventListener('pointerleave', () => store.set({ worker: null }));
        return row;
      }),
    );
    release.hidden = !shown.rows.some(row => row.pins.some(pin => pin !== null));
    release.disabled = !!noKernel(store);
    say(count, partition.found.length > 1 ? plural(partition.found.length, 'partition') : '');
    found.replaceChildren(...partition.found.map(each => foundRow(store, each, shown)));
  };
  const close = store.on(['partition', 'budget_bytes', 'offline'], show);
  show();
  return { close };
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

function foundRow(store, each, shown) {
  const pins = each.pins ? `, ${plural(each.pins, 'pin')}` : '';
  const text = `${countText(workersOf(each))} workers (${each.mesh.join(' × ')})${pins}`;
  const amounts = `${bytesText(each.bytes)} a step, ${bytesText(each.most_bytes)} each`;
  const button = make(
    'button',
    { type: 'button', 'aria-pressed': String(each.number === shown.number) },
    make('span', { text }),
    make('span', { text: amounts }),
  );
  button.disabled = !!noKernel(store);
  button.addEventListener('click', () => store.ask({ do: 'show_partition', which: each.number }));
  return make('li', {}, button);
}
