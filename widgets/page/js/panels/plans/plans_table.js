// The table of plans. Its rows stay while it changes, so that what is being typed into one is not lost.
import { make, say } from '../../core/dom.js';
import { bytesText, percentText, secondsText } from '../../core/units.js';
import { noKernel } from '../../data/action_availability.js';

const HEADS = [
  ['show', ''],
  ['name', 'name'],
  ['machine', 'machine'],
  ['number', 'budget'],
  ['number', 'step time'],
  ['number ideal', 'of ideal'],
  ['number moved', 'moved'],
  ['number again', 'run again'],
  ['method', 'method'],
  ['note', 'note'],
  ['compare', 'compare'],
];
const BEST = 'The fastest of the list for its machine';

export function plansTable(store) {
  const heads = HEADS.map(([name, text]) => make('th', { scope: 'col', class: name, text: text || null }));
  heads[0].append(make('span', { class: 'sr', text: 'plan' }));
  const body = make('tbody');
  const table = make('table', {}, make('thead', {}, make('tr', {}, ...heads)), body);
  const element = make('div', { class: 'sw-plans-box' }, table);
  const rows = new Map();
  let shown;
  element.addEventListener('keydown', event => moveRow(event, body));
  const show = () => {
    const plans = store.plans?.rows ?? [];
    const numbers = new Set(plans.map(({ number }) => number));
    for (const [number, { row }] of rows) {
      if (numbers.has(number)) continue;
      row.remove();
      rows.delete(number);
    }
    const here = body.contains(body.getRootNode().activeElement);
    for (const plan of plans) {
      if (!rows.has(plan.number)) {
        const made = tableRow(store, plan.number);
        rows.set(plan.number, made);
        body.append(made.row);
        made.show(plan);
      } else rows.get(plan.number).show(plan);
    }
    const stop = plans.find(plan => plan.shown)?.number ?? plans[0]?.number;
    if (here) return;
    for (const [number, { go }] of rows) go.tabIndex = number === stop ? 0 : -1;
    if (shown !== stop) reveal(rows.get(stop)?.row, element);
    shown = stop;
  };
  const close = store.on(['plans', 'offline', 'comparedPlans'], show);
  show();
  return { element, close };
}

// Scroll the table alone, never the notebook that it is in, until a row is between its head and its foot.
function reveal(row, element) {
  if (!row) return;
  const { offsetTop, offsetHeight } = row;
  const highest = offsetTop - element.querySelector('thead').offsetHeight;
  element.scrollTop = Math.max(Math.min(element.scrollTop, highest), offsetTop + offsetHeight - element.clientHeight);
}

function tableRow(store, number) {
  const star = make('i', { 'aria-hidden': 'true' });
  const go = make('button', { type: 'button', class: 'sw-plan-go' }, make('span', { text: number }), star);
  const [name, note] = [field(store, number, 'name', 80), field(store, number, 'note', 1000)];
  const cells = HEADS.slice(2, 9).map(([kind]) => make('td', { class: kind }));
  const compare = make('input', { type: 'checkbox', 'aria-label': `Compare plan ${number}` });
  const ask = () => !noKernel(store) && store.ask({ do: 'show_plan', plan: number });
  go.addEventListener('click', ask);
  compare.addEventListener('change', () => choose(store, number, compare.checked));
  const row = make(
    'tr',
    { 'data-number': number },
    make('th', { scope: 'row', class: 'show' }, go),
    make('td', { class: 'name' }, name),
    ...cells,
    make('td', { class: 'note' }, note),
    make('td', { class: 'compare' }, compare),
  );
  row.addEventListener('click', event => {
    if (!event.target.closest('input, button')) ask();
  });
  const show = plan => {
    const offline = noKernel(store);
    say(star, plan.best ? '★' : '');
    go.setAttribute('aria-label', `Show plan ${number}${plan.best ? `. ${BEST}` : ''}`);
    go.setAttribute('aria-pressed', plan.shown);
    go.title = offline || (plan.best ? BEST : 'Show this plan, with its machine and budget');
    row.classList.toggle('shown', plan.shown);
    row.classList.toggle('best', plan.best);
    const texts = [
      plan.machine,
      bytesText(plan.budget_bytes),
      secondsText(plan.step_seconds),
      percentText(plan.percent_of_ideal / 100),
      plan.bytes_moved ? bytesText(plan.bytes_moved) : 'nothing',
      plan.recompute_seconds ? secondsText(plan.recompute_seconds) : 'nothing',
      plan.method,
    ];
    texts.forEach((text, k) => {
      say(cells[k], text);
      if (k === 0 || k === 6) cells[k].title = text;
    });
    for (const [input, text] of [
      [name, plan.name],
      [note, plan.note],
    ]) {
      if (input !== input.getRootNode().activeElement) input.value = text;
      input.dataset.saved = text;
      input.readOnly = !!offline;
      input.title = text;
    }
    compare.checked = store.comparedPlans.includes(number);
    compare.disabled = !!offline;
  };
  return { row, go, show };
}

// A name or a note, edited in place: Enter or leaving it saves, Esc restores.
function field(store, number, what, most) {
  const label = `${what === 'name' ? 'Name' : 'Note'} of plan ${number}`;
  const input = make('input', { type: 'text', maxlength: most, 'aria-label': label });
  if (what === 'note') input.placeholder = 'add a note';
  input.addEventListener('change', () => {
    if (input.value === input.dataset.saved) return;
    input.dataset.saved = input.value;
    store.ask({ do: 'write_plan', plan: number, [what]: input.value });
  });
  input.addEventListener('keydown', event => {
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    input.value = input.dataset.saved;
    input.blur();
  });
  return input;
}

// Two plans are compared; a third takes the place of the first of them.
function choose(store, number, on) {
  const chosen = store.comparedPlans.filter(each => each !== number);
  if (on) chosen.push(number);
  const [first, second] = chosen.slice(-2);
  store.set({ comparedPlans: chosen.slice(-2) });
  if (second === undefined) store.ask({ do: 'compare_plans', first: null, second: null });
  else store.ask({ do: 'compare_plans', first, second });
}

// Arrows go from plan to plan; Enter, on the button that has the focus, shows it.
function moveRow(event, body) {
  const { key, target } = event;
  if (!['ArrowUp', 'ArrowDown', 'Home', 'End'].includes(key) || !target.matches('.sw-plan-go')) return;
  event.preventDefault();
  event.stopPropagation();
  const all = [...body.querySelectorAll('.sw-plan-go')];
  const now = all.indexOf(target);
  const to = { ArrowUp: now - 1, ArrowDown: now + 1, Home: 0, End: all.length - 1 }[key];
  const next = all[Math.max(0, Math.min(all.length - 1, to))];
  for (const each of all) each.tabIndex = each === next ? 0 : -1;
  next.focus();
}
