// The selection in one line with exact numbers, and the latest notice. Both are announced when they change.
import { registerFeature } from '../../core/features.js';
import { goToSelection } from '../../core/navigation.js';
import { allow, allowed, make, say } from '../../core/dom.js';
import { KIND_LABELS, kindVariable, PHASES } from '../../core/kinds.js';
import { bytesText, countText, exactBytes, secondsText } from '../../core/units.js';
import { opFacts, storageFacts } from '../../data/neighbours.js';
import { copyButton } from './copy_button.js';
import { awayFact, swapsOf, whyMoved } from '../memory/why_moved.js';

const HINT = 'Click a tensor, an op or a module to follow it in every panel; drag with Shift to sum up a span. ';
const NAMED = 3; // of the storages of a span, the largest
const LASTING = 12000; // milliseconds that a notice is shown

export function selectionPanel(section, bench) {
  const { store } = bench;
  const swatch = make('i', { class: 'k' });
  const name = make('span', { class: 'name' });
  const facts = make('span', { class: 'facts' });
  const why = make('span', { class: 'why' });
  const [source, spoken, setSource] = copyButton();
  const line = make('div', { class: 'line', role: 'status', 'aria-atomic': 'true' }, swatch, name, source, facts, why);
  const hint = make('span', { class: 'why' }, HINT, make('kbd', { text: '?' }), ' shows the keys.');
  const news = make('div', { class: 'news', role: 'status' });
  const button = (text, key, click) =>
    make('button', { type: 'button', class: 'btn small', click }, text + ' ', make('kbd', { text: key }));
  const zoom = button('Zoom', 'F', () => {
    if (allowed(zoom)) goToSelection(bench);
  });
  const clear = button('Clear', 'Esc', () => {
    store.set({ selection: null });
    bench.root.focus();
  });
  section.append(line, hint, spoken, news, make('span', { class: 'grow' }), zoom, clear);

  const show = () => {
    const { focus, graph, plan } = store;
    const told = focus ? SPOKEN[focus.type](focus, graph, plan) : NOTHING;
    name.textContent = focus ? told.name : '';
    swatch.hidden = told.kind === undefined;
    if (told.kind !== undefined) swatch.style.background = kindVariable(told.kind);
    setSource(told.facts.find(([label]) => label === 'source')?.[1] ?? '');
    facts.replaceChildren(...told.facts.filter(([label]) => label !== 'source').map(fact));
    say(why, told.why || '');
    why.title = told.why || '';
    name.title = focus ? told.name : '';
    zoom.hidden = clear.hidden = !focus;
    allow(zoom, plan ? '' : 'There is no plan to zoom into yet');
    hint.hidden = Boolean(focus);
  };
  let timer = 0;
  const showNews = () => {
    say(news, store.notice?.sentence || '');
    news.title = news.textContent;
    clearTimeout(timer);
    if (store.notice) timer = setTimeout(() => store.set({ notice: null }), LASTING);
  };
  const stops = [
    store.on(['focus', 'plan'], show),
    store.on(['notice'], showNews),
    store.on(['selection'], () => {
      if (store.notice) store.set({ notice: null });
    }),
  ];
  show();
  showNews();
  return () => {
    clearTimeout(timer);
    stops.forEach(stop => stop());
  };
}

const fact = ([label, value]) => make('span', {}, label, label && value ? ' ' : null, make('em', { text: value }));

const NOTHING = { facts: [['Nothing selected.', '']] };

const SPOKEN = {
  storage({ id }, graph, plan) {
    const kind = graph.kindOf(id);
    const size = [KIND_LABELS[kind].toLowerCase(), exactBytes(graph.bytesOf(id))];
    const facts = [size, ...storageFacts(graph, id)];
    const residencies = plan ? plan.residencies(id) : [];
    const swaps = plan ? swapsOf(plan)[id] : 0;
    const again = plan ? plan.recomputed(id) : 0;
    if (swaps || again) facts.push(awayFact(graph, plan, id));
    if (swaps) facts.push(['swaps', countText(swaps)]);
    if (again) facts.push(['recomputed', again > 1 ? `${countText(again)} times` : 'once']);
    if (!swaps && !again && residencies.length) {
      const [row] = residencies;
      facts.push(['stays', secondsText(plan.residency_stop[row] - plan.residency_start[row])]);
    }
    if (residencies.length) facts.push(['address', exactBytes(plan.residency_offset[residencies[0]])]);
    return { kind, name: graph.storageName(id), facts, why: plan ? whyMoved(graph, plan, id) : '' };
  },
  op({ id }, graph, plan) {
    const slot = plan?.slots ? plan.slotOf(id) : id;
    const where = `op ${countText(slot + 1)} of ${countText(plan?.slots || graph.ops)}`;
    const facts = [
      [graph.shortTarget(id), ''],
      ...opFacts(graph, id),
      [PHASES[graph.op_phase[id]], where],
    ];
    if (plan?.slots) {
      facts.push(['takes', secondsText(plan.secondsAt(slot), 3)]);
      const again = [...plan.slotsOf(id)].slice(1).map(other => secondsText(plan.op_start[other], 3));
      if (again.length) facts.push(['runs again at', again.join(', ')]);
    }
    facts.push(['working set', exactBytes(graph.op_working_set[id])]);
    return { name: graph.opName(id), facts, why: plan?.slots ? whyLate(graph, plan, id) : '' };
  },
  module: (focus, graph, plan) => several(focus, graph, plan),
  group: (focus, graph, plan) => several(focus, graph, plan),
  span: (focus, graph, plan) => ({ ...several(focus, graph, plan), why: largest(focus, graph) }),
};

function several({ type, id, label, storages, ops }, graph, plan) {
  const all = [...storages];
  const bytes = all.reduce((sum, storage) => sum + graph.bytesOf(storage), 0);
  const facts = [
    ['storages', countText(all.length)],
    ['ops', countText(ops.size)],
    ['bytes', exactBytes(bytes)],
  ];
  if (plan) {
    const swaps = swapsOf(plan);
    const swapped = all.filter(storage => swaps[storage]).length;
    const again = all.filter(storage => plan.recomputed(storage)).length;
    facts.push(['at the peak', exactBytes(bytesAtPeak(graph, plan, storages))], ['swapped', countText(swapped)]);
    if (again) facts.push(['recomputed', countText(again)]);
  }
  const kind = type === 'module' && graph.module_kinds[id];
  return { name: label, facts: kind ? [[kind, ''], ...facts] : facts };
}

function largest({ storages }, graph) {
  const names = [...storages]
    .sort((a, b) => graph.bytesOf(b) - graph.bytesOf(a))
    .slice(0, NAMED)
    .map(storage => `${graph.storageName(storage)} ${bytesText(graph.bytesOf(storage))}`);
  return names.length ? `largest: ${names.join(', ')}` : '';
}

function bytesAtPeak(graph, plan, storages) {
  let bytes = 0;
  for (const residency of plan.present(plan.peak.seconds)) {
    const storage = plan.residency_storage[residency];
    if (storages.has(storage)) bytes += graph.bytesOf(storage);
  }
  return bytes;
}

// What an op had to wait for before it could start.
function whyLate(graph, plan, op) {
  const k = plan.stall_op.indexOf(op);
  if (k < 0) return '';
  const storage = plan.stall_storage[k];
  const waited = secondsText(plan.stall_stop[k] - plan.stall_start[k]);
  return `waited ${waited}${storage >= 0 ? ` for ${graph.storageName(storage)}` : ''}`;
}

function clearSelection({ store }) {
  if (!store.selection) return false;
  store.set({ selection: null });
  return true;
}

registerFeature({ name: 'selection', label: 'Selection', panel: selectionPanel, keys: { Escape: clearSelection } });
