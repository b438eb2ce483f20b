// The table of splits: a row for tensors of equal layers, a column per level; a choice in a cell pins it.
import { make, say } from '../../core/dom.js';
import { drawnStorages } from '../../data/drawn_step.js';
import { titleOf } from '../../data/neighbours.js';
import { noKernel } from '../../data/action_availability.js';
import { bytesText, plural } from '../../core/units.js';

const FREE = 'free';
const COPIES = 'replicated';

export function splitsTable(store) {
  const element = make('div', {
    class: 'sw-splits-box',
    tabindex: '0',
    role: 'group',
    'aria-label': 'Splits of tensors',
  });
  let drawn = '';
  let [last, before] = [null, null];
  const show = () => {
    const shown = store.partition?.shown;
    const key = JSON.stringify([shown?.rows, shown?.others, !!noKernel(store), store.drawn, store.shownWorker?.worker]);
    if (key !== drawn) {
      drawn = key;
      if (shown && last && last.number !== shown.number) before = last;
      last = shown ?? last;
      const place = keptFocus(element);
      element.replaceChildren(shown ? table(store, shown, before) : emptyWords());
      place();
    }
    const now = store.selection;
    for (const button of element.querySelectorAll('.sw-split-name')) {
      button.setAttribute('aria-pressed', now?.type === 'group' && now.id === button.dataset.id);
    }
    if (!shown) say(element.querySelector('p'), words(store));
  };
  const close = store.on(['partition', 'selection', 'graph', 'offline', 'drawn', 'shownWorker'], show);
  show();
  return { element, close };
}

// A function that focuses the control that had the focus, in the table that replaces the one it was in.
function keptFocus(element) {
  const { activeElement: active } = element.getRootNode();
  const key = control => control.getAttribute('aria-label') ?? control.dataset.id;
  const had = element.contains(active) ? key(active) : null;
  const top = element.scrollTop;
  return () => {
    element.scrollTop = top;
    if (had) [...element.querySelectorAll('select, button')].find(each => key(each) === had)?.focus();
  };
}

const emptyWords = () => make('div', { class: 'sw-empty' }, make('b', { text: 'Not split yet.' }), make('p'));

function words({ partition, graph }) {
  if (!graph) return 'The step is still being captured.';
  if (partition?.state === 'running') return `${partition.doing || 'searching'}…`;
  return 'Partition finds how to split the step over several workers so that they exchange the fewest bytes.';
}

// `before`: the partition that was shown before, whose other splits are marked.
function table(store, shown, before) {
  const others = new Map();
  if (before && before.mesh.join() === shown.mesh.join()) {
    for (const row of before.rows) others.set(row.name, row.ways);
  }
  const was = ({ name, ways }, level) => {
    const other = others.get(name)?.[level];
    return other === undefined || other === ways[level] ? '' : `${other} in the one before`;
  };
  const levels = shown.mesh.map((parts, level) => make('th', { scope: 'col', text: levelName(shown.mesh, level) }));
  const head = make(
    'tr',
    {},
    make('th', { scope: 'col', text: 'tensors' }),
    make('th', { scope: 'col', text: 'size' }),
    ...levels,
  );
  const rows = shown.rows.map((row, number) => tableRow(store, row, number, was));
  const [count, bytes] = shown.others;
  const smaller = `${plural(count, 'smaller tensor')}, ${bytesText(bytes)}`;
  const foot = make('tr', { class: 'rest' }, make('td', { colspan: 2 + levels.length, text: smaller }));
  const columns = ['name', 'size', ...shown.mesh.map(() => 'level')].map(name => make('col', { class: name }));
  const least = `min-width: ${168 + 82 * shown.mesh.length}px`;
  return make(
    'table',
    { style: least },
    make('colgroup', {}, ...columns),
    make('thead', {}, head),
    make('tbody', {}, ...rows, ...(count ? [foot] : [])),
  );
}

// `level 1` of two or more parts; the number of parts if it is not 2.
const levelName = (mesh, level) => `level ${level + 1}${mesh[level] === 2 ? '' : ` (${mesh[level]})`}`;

function tableRow(store, row, number, was) {
  const id = `split ${row.storages[0]}`;
  const name = make('button', { type: 'button', class: 'sw-split-name', 'data-id': id });
  name.append(make('bdi', { text: row.name }));
  const here = drawnStorages(store, row.storages);
  name.title = titleOf(row.name, store.graph, here);
  const target = here.length ? { type: 'group', id, label: row.name, storages: here } : null;
  name.addEventListener('click', () => {
    const again = store.selection?.type === 'group' && store.selection.id === id;
    if (target) store.set({ selection: again ? null : target });
    if (!(again && target) && !noKernel(store)) store.ask({ do: 'blocks', storage: row.storages[0] });
  });
  name.addEventListener('pointerenter', () => store.set({ hover: target }));
  name.addEventListener('pointerleave', () => store.point());
  const many = row.tensors > 1 ? make('small', { text: `×${row.tensors}` }) : null;
  const cells = row.ways.map((_, level) =>
    make('td', {}, pinChoice(store, row, number, level, was(row, level))),
  );
  return make(
    'tr',
    {},
    make('th', { scope: 'row' }, make('span', {}, name, many)),
    make('td', { text: bytesText(row.bytes / row.tensors), title: `${row.shape.join(' × ')}, each` }),
    ...cells,
  );
}

// What a tensor is at a level, and what it may be pinned to.
function pinChoice(store, row, number, level, was) {
  const pin = row.pins[level];
  const pinned = pin !== null && pin !== undefined;
  const select = make('select', {
    'aria-label': `${row.name}, level ${level + 1}`,
    class: [pinned && 'pinned', was && 'differs'].filter(Boolean).join(' ') || null,
    'aria-description': was || null,
    title: (pinned ? 'Pinned' : 'Chosen by the search') + (was && `; ${was}`),
  });
  const way = row.ways[level];
  const choices = [[FREE, pinned ? 'not pinned' : way]];
  row.shape.forEach((size, dimension) => size > 1 && choices.push([String(dimension), `dim ${dimension}`]));
  choices.push([COPIES, 'copies']);
  for (const [value, text] of choices) select.append(make('option', { value, text }));
  select.value = pinned ? String(pin) : FREE;
  select.disabled = !!noKernel(store);
  select.addEventListener('change', () => {
    const { value } = select;
    const wanted = value === FREE ? null : value === COPIES ? value : Number(value);
    store.ask({ do: 'pin', row: number, level, value: wanted });
  });
  return select;
}
