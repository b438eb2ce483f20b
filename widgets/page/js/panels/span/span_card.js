// The sums of the span that is selected or being dragged, in place of what holds memory.
import { make, say } from '../../core/dom.js';
import { KIND_LABELS, kindVariable } from '../../core/kinds.js';
import { boundsOf, shownSpan, spanText } from '../../core/span.js';
import { bytesText, percentText, plural, secondsText } from '../../core/units.js';
import { spanSums } from './span_sums.js';

const SHOWN = 6; // rows of modules
const REST = 'var(--sw-ink3)';

// Returns the element, which is hidden without a span, and a function that closes it.
export function spanCard({ store, axis }) {
  const title = make('h3', { text: 'Span' });
  const note = make('span', { class: 'note' });
  const facts = make('p', { class: 'facts' });
  const [kinds, modules] = ['Bytes by kind', 'Bytes by module'].map(label => make('ul', { 'aria-label': label }));
  const body = make('div', { class: 'sw-span-body', tabindex: '0', role: 'group', 'aria-label': 'Sums of the span' });
  body.append(facts, make('div', { class: 'sw-span-lists' }, kinds, modules));
  const element = make('div', { class: 'sw-span', hidden: true });
  element.append(make('div', { class: 'sw-title' }, title, note), body);
  let frame = 0;

  const show = () => {
    frame = 0;
    const span = shownSpan(store);
    const { plan } = store;
    element.hidden = !span || !plan;
    if (element.hidden) return;
    const bounds = boundsOf(span, plan);
    const sums = spanSums(plan, bounds);
    element.classList.toggle('at-left', Boolean(span.time) && axis.x((bounds.from + bounds.to) / 2) > axis.width / 2);
    say(note, spanText(span, plan));
    note.title = note.textContent;
    facts.replaceChildren(...factsOf(sums, span, bounds).map(group => make('span', {}, ...group.map(fact))));
    kinds.replaceChildren(...kindRows(sums));
    modules.replaceChildren(...moduleRows(sums));
  };
  const ask = () => {
    frame ||= requestAnimationFrame(show);
  };
  const stop = store.on(['draggedSpan', 'selection', 'plan'], ask);
  show();
  const close = () => {
    stop();
    cancelAnimationFrame(frame);
  };
  return { element, close };
}

const fact = ([label, value]) => make('span', {}, `${label} `, make('em', { text: value }));

// In groups that belong together. A span of addresses alone has no time in which streams are busy.
function factsOf({ storages, bytes, most, out, into, busy }, { time }, { from, to }) {
  const streams = Object.entries(busy).map(([name, seconds]) => {
    const share = to > from ? percentText(Math.min(1, seconds / (to - from)), 0) : '0 %';
    return [name === 'compute' ? 'busy: compute' : name, `${secondsText(seconds)}, ${share}`];
  });
  return [
    [
      [plural(storages, 'storage'), bytesText(bytes)],
      ['most at once', bytesText(most)],
    ],
    [
      ['swapped out', bytesText(out)],
      ['in', bytesText(into)],
    ],
    ...(time ? [streams] : []),
  ];
}

function kindRows({ kinds }) {
  const most = Math.max(...kinds);
  const there = KIND_LABELS.map((label, kind) => [label, kinds[kind], kindVariable(kind)]).filter(([, bytes]) => bytes);
  return there.sort((a, b) => b[1] - a[1]).map(entry => row(entry, most));
}

function moduleRows({ modules }) {
  const shown = modules.slice(0, modules.length > SHOWN ? SHOWN - 1 : SHOWN);
  const rest = modules.slice(shown.length);
  const entries = shown.map(({ name, bytes }) => [name, bytes, 'var(--sw-ink2)']);
  const sum = rest.reduce((bytes, module) => bytes + module.bytes, 0);
  if (rest.length) entries.push([plural(rest.length, 'other'), sum, REST]);
  return entries.map(entry => row(entry, Math.max(...entries.map(([, bytes]) => bytes))));
}

function row([name, bytes, colour], most) {
  const bar = make('i');
  bar.style.background = colour;
  bar.style.width = `${(bytes / most) * 100}%`;
  const label = make('span', { class: 'n', text: name, title: name });
  const value = make('span', { class: 'v', text: bytesText(bytes) });
  return make('li', {}, label, make('span', { class: 'bar' }, bar), value);
}
