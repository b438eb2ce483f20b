// The panel of plans: all that were made, to go back to, and in what two of them differ.
import { column } from '../../controls/column.js';
import { allow, allowed, make, say } from '../../core/dom.js';
import { plural } from '../../core/units.js';
import { noKernel } from '../../data/action_availability.js';
import { plansTable } from './plans_table.js';
import { planDifference } from './plan_difference.js';

export function plansPanel(section, { store }) {
  const list = column('Plans');
  const two = column('Difference');
  list.element.classList.add('sw-plan-list', 'sw-choosing');
  const chosen = make('input', { type: 'file', accept: '.json,application/json', hidden: true });
  chosen.addEventListener('change', () => load(store, chosen));
  const nothing = (way, reason) => (store.plans?.[way] ? '' : reason);
  const none = ({ plans }) => (plans?.rows.length ? '' : 'No plan was made yet');
  const buttons = [
    ['Undo', 'undo', () => store.ask({ do: 'undo' }), () => nothing('undo', 'No plan was shown before')],
    ['Redo', 'redo', () => store.ask({ do: 'redo' }), () => nothing('redo', 'Nothing was undone')],
    ['Save list', 'save', () => store.ask({ do: 'save_plans' }), () => none(store)],
    ['Load list', 'load', () => chosen.click(), () => (store.graph ? '' : 'The step is still being captured')],
  ].map(([text, name, press, reason]) => {
    const element = make('button', { type: 'button', class: `btn small sw-plans-${name}`, text });
    element.addEventListener('click', () => allowed(element) && press());
    return { element, reason };
  });
  const head = list.element.querySelector('h3');
  head.append(make('span', { class: 'grow' }), ...buttons.map(({ element }) => element), chosen);
  list.note.classList.add('medium-hide');
  const dropped = make('p', { class: 'sw-empty-line' });
  const empty = make('div', { class: 'sw-empty' }, make('b', { text: 'No plan was made yet.' }));
  empty.append(make('p', { text: 'Every plan that is shown is kept here, with its machine and budget.' }));
  const table = plansTable(store);
  const difference = planDifference(store, two.note);
  list.element.append(table.element, empty, dropped);
  two.element.append(difference.element);
  section.append(make('div', { class: 'sw-cols sw-plans-cols' }, list.element, two.element));
  const show = () => {
    const { rows, dropped: gone } = store.plans ?? { rows: [], dropped: 0 };
    table.element.hidden = !rows.length;
    empty.hidden = !!rows.length;
    dropped.hidden = !gone;
    const verb = gone > 1 ? 'were' : 'was';
    say(dropped, gone ? `${plural(gone, 'older plan')} without a name or a note ${verb} dropped.` : '');
    for (const { element, reason } of buttons) allow(element, noKernel(store) || reason());
  };
  const stop = store.on(['plans', 'graph', 'offline'], show);
  show();
  return () => {
    stop();
    for (const part of [table, difference]) part.close();
  };
}

async function load(store, chosen) {
  const [file] = chosen.files;
  if (file) store.ask({ do: 'load_plans', text: await file.text() });
  chosen.value = '';
}
