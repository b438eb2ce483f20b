// In what two plans of the list differ: their figures, and the tensors that they treat differently, to be marked.
import { make, say } from '../../core/dom.js';
import { bytesText, plural } from '../../core/units.js';
import { drawnStorages } from '../../data/drawn_step.js';

const MOST = 60;

export function planDifference(store, note) {
  const element = make('div', {
    class: 'sw-plan-difference',
    tabindex: '0',
    role: 'group',
    'aria-label': 'Difference of two plans',
  });
  let drawn;
  const show = () => {
    const found = store.planDifference;
    if (found !== drawn || !element.childElementCount) {
      drawn = found;
      element.replaceChildren(...(found ? content(store, found) : [emptyWords()]));
      say(note, found ? `plans ${found.first} and ${found.second}` : '');
    }
    const { selection } = store;
    for (const button of element.querySelectorAll('.sw-plan-tensor')) {
      const on = selection?.type === 'storage' && String(selection.id) === button.dataset.storage;
      button.setAttribute('aria-pressed', on);
    }
  };
  const close = store.on(['planDifference', 'selection', 'graph', 'drawn'], show);
  show();
  return { element, close };
}

const emptyWords = () =>
  make('div', { class: 'sw-empty' }, make('p', { text: 'Tick two plans to see in what they differ.' }));

function content(store, { first, second, figures, tensors, same }) {
  const corner = make('td', {}, make('span', { class: 'sr', text: 'Measure' }));
  const heads = [first, second].map(number => make('th', { scope: 'col', text: `plan ${number}` }));
  const rows = figures.map(([name, one, other]) =>
    make('tr', {}, make('th', { scope: 'row', text: name }), make('td', { text: one }), make('td', { text: other })),
  );
  const table = make(
    'table',
    { class: 'sw-difference' },
    make('thead', {}, make('tr', {}, corner, ...heads)),
    make('tbody', {}, ...rows),
  );
  const alike = `${plural(same, 'tensor')} treated alike.`;
  if (!tensors.length) return [table, make('p', { class: 'sw-empty-line', text: alike })];
  const storages = tensors.map(([storage]) => storage);
  const words = `${plural(tensors.length, 'tensor')} treated differently`;
  const all = make('button', { type: 'button', class: 'btn small', text: 'Mark all' });
  all.title = 'Select these tensors in all views';
  all.addEventListener('click', () => {
    const here = drawnStorages(store, storages);
    const selection = { type: 'group', id: `plans ${first} ${second}`, label: words, storages: here };
    if (here.length) store.set({ selection });
  });
  const items = tensors.slice(0, MOST).map(each => tensorItem(store, each));
  const list = make('ul', { class: 'sw-plan-tensors' }, ...items);
  const rest = tensors.length > MOST ? `${plural(tensors.length - MOST, 'smaller one')}, and ` : '';
  return [
    make('p', { class: 'sw-plan-differing' }, make('b', { text: words }), ' ', all),
    table,
    list,
    make('p', { class: 'sw-empty-line', text: rest + alike }),
  ];
}

function tensorItem(store, [storage, name, bytes, one, other]) {
  const button = make('button', { type: 'button', class: 'sw-plan-tensor', 'data-storage': storage, title: name });
  button.append(make('bdi', { text: name }), make('span', { text: `${bytesText(bytes)}: ${one} → ${other}` }));
  button.addEventListener('click', () => {
    const [here] = drawnStorages(store, [storage]);
    if (here !== undefined) store.select('storage', here);
  });
  return make('li', {}, button);
}
