// Facts about a run besides its memory: step times, losses, the comparison with eager PyTorch, and the parts of the
// difference to the prediction.
import { bars, drawing, sparkline } from '../../controls/bar_rows.js';
import { column } from '../../controls/column.js';
import { make, say } from '../../core/dom.js';
import { bytesText, changeText, countText, plural, secondsText } from '../../core/units.js';

const LAST = 3; // steps that get a bar of their own
const WARM = '1: warm-up';
const FAR = 2; // times the prediction: the plan is not the cause
const MEDIAN = 'The median of all steps but the first, which warms up';
const BUSY = '. Other programs had the processor, now or as ops were measured';
const CHECK = ['2,6.5 5,9.5 10,3'];
const CROSS = ['3,3 9,9', '9,3 3,9'];

export function stepTimes(store) {
  const rows = make('div', { class: 'sw-bars' });
  const losses = make('div', { class: 'sw-losses' });
  const times = column('Step times', rows, losses);
  const show = () => {
    const { run } = store;
    const predicted = run && !run.elsewhere ? run.predicted_step_seconds : null;
    const done = run?.step_seconds ?? [];
    const all = timeRows(run, predicted, done);
    const others = all.filter(([name]) => name !== WARM);
    const longest = Math.max(...(others.length ? others : all).map(([, seconds]) => seconds), 1e-12) * 1.06;
    bars(
      rows,
      all.map(([name, seconds, text, old]) => [name, seconds / longest, text ?? secondsText(seconds), old]),
    );
    const compared = done.length > 1 && predicted ? onPrediction(usual(done) / predicted) : '';
    say(times.note, compared || (done.length ? 'the first step warms up' : ''));
    times.note.title = compared && `${MEDIAN}${usual(done) > FAR * predicted ? BUSY : ''}`;
    showLosses(losses, run?.losses ?? []);
  };
  const close = store.on(['run'], show);
  show();
  return { element: times.element, close };
}

// The length of a step relative to its prediction.
function onPrediction(ratio) {
  if (ratio < FAR) return `${changeText(ratio - 1)} on prediction`;
  return `${ratio.toFixed(ratio < 10 ? 1 : 0)} × the prediction`;
}

// Rows of name, seconds and, if there is no amount, a text.
function timeRows(run, predicted, done) {
  const rows = predicted === null ? [] : [['predicted', predicted, null, true]];
  const eager = run?.eager_step_seconds ?? [];
  if (eager.length) rows.push(['eager', usual(eager), null, true]);
  const first = Math.max(1, done.length - LAST);
  if (done.length) rows.push([WARM, done[0]]);
  if (first > 1) rows.push([first === 2 ? 'step 2' : `2–${first}, mean`, mean(done.slice(1, first))]);
  for (let step = first; step < done.length; step++) rows.push([`step ${step + 1}`, done[step]]);
  if (run?.state === 'running' && done.length < run.steps) {
    const now = run.seconds?.length ? run.seconds[run.seconds.length - 1] : 0;
    const passed = now - (run.step_start?.[done.length] ?? Infinity);
    rows.push([done.length ? `step ${done.length + 1}` : WARM, Math.max(0, passed), 'running']);
  }
  return rows;
}

// The median of all steps but the first, which is a warm-up.
function usual(values) {
  const sorted = [...(values.length > 1 ? values.slice(1) : values)].sort((a, b) => a - b);
  const half = (sorted.length - 1) / 2;
  return mean([sorted[Math.floor(half)], sorted[Math.ceil(half)]]);
}

const mean = values => values.reduce((a, b) => a + b, 0) / values.length;

function showLosses(element, losses) {
  if (element.dataset.count === String(losses.length)) return;
  element.dataset.count = losses.length;
  element.replaceChildren();
  if (!losses.length) return;
  const numbers = losses.filter(loss => loss !== null);
  const text = loss => (loss === null ? 'not finite' : Number(loss.toPrecision(4)).toString());
  const some = losses.length > 2 ? [text(losses[0]), '…', text(losses.at(-1))] : losses.map(text);
  const line = make('span', { class: 'sw-loss-values', text: some.join(' → ') });
  element.append(make('span', { class: 'sw-loss-name', text: 'Loss' }), line);
  if (numbers.length > 1) element.append(sparkline(numbers, `Loss over ${plural(losses.length, 'step')}`));
}

export function comparison(store) {
  const badge = make('div', { class: 'sw-badge' });
  const rows = make('div', { class: 'sw-bars sw-bars-tall' });
  const equal = column('Compared with eager PyTorch', badge);
  const peak = column('Arena', rows);
  const element = make('div', { class: 'sw-col sw-facts-col' }, ...equal.element.children, ...peak.element.children);
  const peakParts = [...element.children].slice(-2);
  let key = '';
  const show = () => {
    const { run } = store;
    showBadge(badge, run);
    const differences = run?.differences ?? [];
    const next = JSON.stringify([differences, run?.peak_bytes ?? null, run?.predicted_peak_bytes ?? null]);
    if (next === key) return;
    key = next;
    for (const part of peakParts) part.hidden = !differences.length && !peakText(run);
    say(peak.note, peakText(run));
    const largest = Math.max(...differences.map(([, bytes]) => Math.abs(bytes)), 1);
    bars(
      rows,
      differences.map(([name, bytes]) => [name, Math.abs(bytes) / largest, signed(bytes)]),
    );
  };
  const close = store.on(['run'], show);
  show();
  return { element, close };
}

const signed = bytes => (bytes < 0 ? '−' : '') + bytesText(Math.abs(bytes));

function peakText(run) {
  if (run?.peak_bytes === null || run?.peak_bytes === undefined) return '';
  const predicted = run.predicted_peak_bytes;
  if (predicted === null) return bytesText(run.peak_bytes);
  const by = run.peak_bytes - predicted;
  return `${bytesText(run.peak_bytes)}, ${by ? `${by < 0 ? '−' : '+'}${bytesText(Math.abs(by))}` : 'as predicted'}`;
}

function showBadge(badge, run) {
  const [kind, head, text] = verdict(run);
  const key = [kind, head, text].join('|');
  if (badge.dataset.key === key) return;
  badge.dataset.key = key;
  badge.dataset.kind = kind;
  badge.title = text;
  badge.replaceChildren(
    ...(kind === 'open' ? [] : [icon(kind === 'same' ? CHECK : CROSS)]),
    make('span', {}, head ? make('b', { text: head }) : null, make('span', { text })),
  );
}

function verdict(run) {
  if (!run || !run.compared) {
    if (run?.state === 'done' && run.checked) return ['open', '', `Compared: ${run.checked}`];
    const waits = run?.state === 'running' || run?.state === 'planning';
    return ['open', '', waits ? 'Nothing compared yet' : 'A run compares every loss and parameter, bit by bit'];
  }
  const tensors = plural(run.compared, 'tensor');
  if (run.mismatched) return ['differs', `${countText(run.mismatched)} of ${tensors} differ`, run.sentence];
  if (run.state === 'done') return ['same', 'Identical to eager', `In ${run.checked}: ${tensors}, 0 bits differ`];
  return ['open', '', `${tensors} equal so far`];
}

const icon = lines => drawing({ width: 12, height: 12, viewBox: '0 0 12 12', 'aria-hidden': 'true' }, lines, 1.8);
