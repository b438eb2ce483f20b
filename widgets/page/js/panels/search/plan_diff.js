// Plan A, plan B and their differences, as a table.
import { make, say } from '../../core/dom.js';
import { bytesText, countText, percentText, secondsText } from '../../core/units.js';
import { standing } from '../../data/budget_answers.js';

// Name, field, text of a value; null instead of true if a difference is meaningless.
const ROWS = [
  ['Budget', 'budget_bytes', bytesText, true],
  ['Step time', 'step_seconds', secondsText, true],
  ['Stalled', 'stall_seconds', seconds => secondsText(settled(seconds)), true],
  ['Run again', 'recompute_seconds', secondsText, true],
  ['Swapped out', 'bytes_out', bytesText, true],
  ['Tensors moved', 'moved', countText, true],
  ['Of ideal', 'percent_of_ideal', percent => percentText(Math.min(100, percent) / 100), null],
  ['Validated', 'valid', valid => (valid ? 'yes' : 'no'), null],
];
const NOTHING = 1e-9; // seconds that are a rounding error

const settled = seconds => (Math.abs(seconds) < NOTHING ? 0 : seconds);

export function planDiffTable(store, note) {
  const cells = ROWS.map(([name]) => {
    const [a, b, between] = [make('td'), make('td'), make('td', { class: 'sw-between' })];
    return { a, b, between, row: make('tr', {}, make('th', { scope: 'row', text: name }), a, b, between) };
  });
  const heads = ['A', 'B', 'A − B'].map(text => make('th', { scope: 'col', text }));
  const corner = make('td', {}, make('span', { class: 'sr', text: 'Measure' }));
  const table = make(
    'table',
    { class: 'sw-difference' },
    make('thead', {}, make('tr', {}, corner, ...heads)),
    make('tbody', {}, ...cells.map(cell => cell.row)),
  );
  const empty = make('p', { class: 'sw-empty-line' });
  const element = make('div', { class: 'sw-difference-box' }, table, empty);
  const show = () => {
    const { plan, verdict, state, bytes } = standing(store);
    const a = plan && {
      ...plan,
      budget_bytes: bytes,
      percent_of_ideal: plan.step_seconds ? (100 * plan.ideal_seconds) / plan.step_seconds : 100,
    };
    const b = store.compare?.plan ?? null;
    table.hidden = !a && !b;
    say(
      empty,
      a || b
        ? ''
        : verdict === 'impossible'
          ? 'No plan exists at this budget, so there is nothing to compare.'
          : state === 'planning'
            ? 'The plan for this budget is being made.'
            : 'There is no plan at this budget yet.',
    );
    say(note, b ? `B is ${store.compare.name}` : a ? 'Shift-click a point for B' : '');
    ROWS.forEach(([, field, text, differs], k) => {
      say(cells[k].a, a ? text(a[field]) : '');
      say(cells[k].b, b ? text(b[field]) : '');
      say(cells[k].between, a && b && differs ? change(a[field], b[field], text) : '');
    });
  };
  const close = store.on(['plan', 'compare', 'budget', 'budget_bytes', 'machine'], show);
  show();
  return { element, close };
}

function change(a, b, text) {
  const by = a - b;
  if (Math.abs(by) < NOTHING) return '=';
  return (by > 0 ? '+' : '−') + text(Math.abs(by));
}
