// The holders of the peak: storages by part of the model and kind. Follows the time cursor of the other panels.
import { registerFeature } from '../../core/features.js';
import { make, say } from '../../core/dom.js';
import { holdersOf } from './holders.js';
import { shownSpan } from '../../core/span.js';
import { kindVariable, KIND_LABELS, KIND_PLURALS } from '../../core/kinds.js';
import { bytesText, countText, plural, secondsText } from '../../core/units.js';
import { spanCard } from '../span/span_card.js';
import { titleOf } from '../../data/neighbours.js';
import { withinOther } from '../../data/budget_answers.js';

const SHOWN = 7;
const NAMED = 3; // tensors in a row's tooltip
const LINE = 18; // pixels of a row

export function holdersPanel(section, bench) {
  const { store } = bench;
  const card = spanCard(bench);
  const title = make('h3', { text: 'Who holds the peak' });
  const list = make('ul', { class: 'holders', 'aria-label': 'Groups of tensors, largest first' });
  const note = make('span', { class: 'note' });
  const change = () => store.set({ holdersBy: by.value });
  const by = make('select', { 'aria-label': 'Group by', change });
  for (const value of ['module', 'line', 'kind']) by.append(make('option', { value, text: value }));
  section.append(make('div', { class: 'sw-title' }, title, note, by), list, card.element);
  const rest = make('li', { class: 'rest' }, make('span'), make('span'));
  let [rows, groups, frame, room] = [[], [], 0, 0];

  const show = () => {
    frame = 0;
    if (shownSpan(store)) return; // its sums are in place of this
    by.value = store.holdersBy;
    const { graph, plan } = store;
    if (!graph || !plan) {
      list.replaceChildren();
      say(note, graph ? 'no plan yet' : '');
      return;
    }
    const pointing = store.cursor !== null && !list.matches(':hover, :focus-within');
    const seconds = pointing ? store.cursor : plan.peak.seconds;
    groups = holdersOf(graph, plan, plan.present(seconds), store.holdersBy);
    const bytes = totalOf(groups);
    say(title, pointing ? 'Who holds memory' : 'Who holds the peak');
    const other = withinOther(store);
    say(note, `${other && other + ': '}${bytesText(bytes)} at ${secondsText(seconds)}`);
    note.title = note.textContent;
    const lines = Math.floor(room / LINE);
    const whole = groups.filter(group => !group.inside);
    if (groups.length > lines && whole.length > 2) groups = whole; // parts would hide other lines
    const shown = groups.slice(0, groups.length <= lines ? lines : Math.max(1, Math.min(SHOWN, lines - 1)));
    while (rows.length < shown.length) rows.push(rowElement());
    shown.forEach((group, k) => fillRow(rows[k], group, groups[0].bytes, store));
    const others = groups.slice(shown.length).filter(group => !group.inside);
    say(rest.firstChild, plural(others.length, store.holdersBy === 'line' ? 'smaller line' : 'smaller group'));
    say(rest.lastChild, bytesText(totalOf(others)));
    const wanted = [...rows.slice(0, shown.length).map(row => row.item), ...(others.length ? [rest] : [])];
    const same = wanted.length === list.children.length && wanted.every((item, k) => item === list.children[k]);
    if (!same) list.replaceChildren(...wanted);
    const stop = rows.slice(0, shown.length).some(({ button }) => button.tabIndex === 0);
    if (!stop && shown.length) rows[0].button.tabIndex = 0;
  };
  const ask = () => {
    frame ||= requestAnimationFrame(show);
  };

  list.addEventListener('click', event => {
    const k = rows.findIndex(row => row.button === event.target.closest('button'));
    if (k < 0) return;
    const now = store.selection;
    const same = now?.type === 'group' && now.id === groups[k].id;
    store.set({ selection: same ? null : target(groups[k]) });
  });
  list.addEventListener('pointerover', event => {
    const k = rows.findIndex(row => row.button === event.target.closest('button'));
    if (k >= 0 && store.hover?.id !== groups[k].id) store.set({ hover: target(groups[k]) });
  });
  list.addEventListener('pointerleave', () => store.point());
  list.addEventListener('keydown', event => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const buttons = [...list.querySelectorAll('button')];
    const next = by && buttons[buttons.indexOf(document.activeElement) + by];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    if (!next) return;
    for (const button of buttons) button.tabIndex = button === next ? 0 : -1;
    next.focus();
  });
  const keys = ['graph', 'plan', 'budget', 'budget_bytes', 'cursor', 'selection', 'holdersBy', 'draggedSpan'];
  const stop = store.on(keys, ask);
  // a notebook lays out nothing that is out of view, so the available height is used only if it is not zero
  const observer = new ResizeObserver(([{ contentRect }]) => {
    if (!contentRect.height || contentRect.height === room) return;
    room = contentRect.height;
    ask();
  });
  observer.observe(list);
  show();
  return () => {
    stop();
    card.close();
    observer.disconnect();
    cancelAnimationFrame(frame);
  };
}

// The parts of a line are in its sum.
const totalOf = groups => groups.reduce((sum, group) => sum + (group.inside ? 0 : group.bytes), 0);
const kindOf = ({ kind, storages, mixed }) =>
  (storages.length > 1 ? KIND_PLURALS[kind] : KIND_LABELS[kind].toLowerCase()) + (mixed ? ' and others' : '');
const countOf = ({ storages }) => (storages.length > 1 ? `, ${countText(storages.length)}` : '');

// The largest of them.
function namesOf(graph, storages) {
  const largest = [...storages].sort((a, b) => graph.bytesOf(b) - graph.bytesOf(a)).slice(0, NAMED);
  const more = storages.length - largest.length;
  return largest.map(storage => graph.storageName(storage)).join(', ') + (more ? ` and ${countText(more)} more` : '');
}

function target(group) {
  const label = `${group.name}, ${kindOf(group)}`;
  return { type: 'group', id: group.id, label, storages: group.storages };
}

function rowElement() {
  const [swatch, name, kind] = [make('i', { class: 'k' }), make('span'), make('em')];
  const [bar, value] = [make('span', { class: 'bar' }), make('span', { class: 'v' })];
  const label = make('span', { class: 'n' }, name, ' ', kind);
  const button = make('button', { type: 'button', tabindex: '-1' }, swatch, label, bar, value);
  return { item: make('li', {}, button), button, swatch, name, kind, bar, value };
}

function fillRow(row, group, most, store) {
  say(row.name, group.name);
  say(row.kind, kindOf(group) + countOf(group));
  row.item.classList.toggle('inside', Boolean(group.inside));
  const ops = group.storages.length > 1 ? '\n' + namesOf(store.graph, group.storages) : '';
  row.button.title = titleOf(`${group.name} ${kindOf(group)}${countOf(group)}${ops}`, store.graph, group.storages);
  say(row.value, bytesText(group.bytes));
  const colour = kindVariable(group.kind);
  row.swatch.style.background = row.bar.style.background = colour;
  row.bar.style.width = `${(group.bytes / most) * 100}%`;
  row.button.setAttribute('aria-pressed', store.selection?.type === 'group' && store.selection.id === group.id);
}

registerFeature({
  name: 'holders',
  label: 'Who holds memory',
  panel: holdersPanel,
  state: { holdersBy: 'module' },
});
