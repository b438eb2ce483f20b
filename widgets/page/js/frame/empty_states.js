// Placeholders shown instead of the panels while there is no graph, a notice when the kernel does not answer, and the
// progress of running work.
import { allow, allowed, make, say } from '../core/dom.js';
import { tabs } from '../core/features.js';
import { moveBudget } from '../data/budget_request.js';
import { noKernel } from '../data/action_availability.js';
import { workerChoice } from '../controls/worker_choice.js';
import { WORKER, workerName } from '../data/drawn_step.js';
import { skeleton } from './skeleton.js';
import { bytesText, countText } from '../core/units.js';
import { answers } from '../data/budget_answers.js';

const AWAY = 'The kernel is busy. If it was restarted, run this cell again.';

export function attachEmptyStates({ root, store }) {
  const parts = [progress(store), away(store), instead(root, store), tooSmall(root, store), worker(root, store)];
  root.append(...parts.map(part => part.element));
  return () => parts.forEach(part => part.close());
}

// A thin progress line along the top edge; the panel concerned shows the text.
function progress(store) {
  const element = make('div', { class: 'sw-progress', 'aria-hidden': 'true' });
  const show = () => {
    const { loading, graph } = store;
    const working = () => tabs().reduce((found, { tab }) => found ?? tab.share(store), null);
    element.style.width = `${Math.min(1, (graph ? working() : loading?.share) ?? 0) * 100}%`;
  };
  const close = store.on([...tabs().map(({ name }) => name), 'workerNews', 'loading', 'graph'], show);
  return { element, close };
}

function away(store) {
  const element = make('div', { class: 'sw-banner', role: 'status', hidden: true });
  const show = () => {
    element.hidden = store.offline !== true;
    say(element, element.hidden ? '' : AWAY);
  };
  const close = store.on(['offline'], show);
  return { element, close };
}

// Without a graph: that the step is being captured or was refused, or that no message has arrived yet.
function instead(root, store) {
  const title = make('h2', { class: 'sw-model' });
  const sentence = make('p', { role: 'status' });
  const cancel = make('button', { type: 'button', class: 'btn', text: 'Cancel' });
  cancel.addEventListener('click', () => {
    if (!allowed(cancel)) return;
    allow(cancel, 'The capture is being stopped');
    store.ask({ do: 'cancel_loading' });
  });
  const head = make('div', { class: 'sw-instead-head' }, title, sentence, cancel);
  const grey = skeleton(root);
  const element = make('div', { class: 'sw-instead' }, head, grey);
  const show = changed => {
    const { graph, refused, loading } = store;
    root.dataset.state = refused && !graph ? 'refused' : graph ? 'ready' : 'loading';
    element.hidden = !!graph;
    if (graph) {
      if (changed?.has('graph')) redraw(root);
      return;
    }
    say(title, refused?.title ?? loading?.name ?? '');
    title.hidden = !title.textContent;
    say(sentence, refused?.sentence ?? (loading ? loadingText(loading) : 'Waiting for the kernel to send the step.'));
    grey.hidden = !!refused;
    cancel.hidden = !!refused || !loading;
    element.setAttribute('aria-busy', !refused);
  };
  const close = store.on(['graph', 'refused', 'loading'], show);
  show();
  return { element, close };
}

// Panels without the header say themselves that they show a worker. Every title names it.
function worker(root, store) {
  const choice = workerChoice(store);
  const words = make('span', { text: 'This is what one worker of the partition does.' });
  const element = make('div', { class: 'sw-banner', hidden: true }, choice.element, words);
  const show = () => {
    const on = store.drawn === WORKER;
    root.toggleAttribute('data-worker', on);
    root.style.setProperty('--sw-worker', on ? JSON.stringify(workerName(store.shownWorker)) : "''");
    element.hidden = !on || !!root.querySelector('.sw-header');
  };
  const stop = store.on(['drawn', 'shownWorker'], show);
  show();
  return { element, close: () => [stop, choice.close].forEach(end => end()) };
}

function redraw(root) {
  for (const host of root.querySelectorAll('.plot')) host.plot?.draw();
}

function loadingText({ doing, ops, seconds }) {
  const phrase = doing || 'capturing the step';
  const counted = ops === null ? '' : `, ${countText(ops)} PyTorch calls so far`;
  const begun = `${phrase[0].toUpperCase()}${phrase.slice(1)}${counted}`;
  return `${begun}, ${(seconds ?? 0).toFixed(1)} s. Nothing is allocated.`;
}

// Panels without the header say themselves that the budget is too small, and offer the least budget.
function tooSmall(root, store) {
  const words = make('span');
  const use = make('button', { type: 'button', class: 'btn small' });
  use.addEventListener('click', () => {
    if (allowed(use)) moveBudget(store, store.machine.least_bytes);
  });
  const element = make('div', { class: 'sw-banner sw-banner-limit', role: 'status', hidden: true }, words, use);
  const show = () => {
    const now = answers(store);
    element.hidden = now?.verdict !== 'impossible' || !!root.querySelector('.sw-header');
    if (element.hidden) return;
    say(words, `${now.why.head} for ${bytesText(now.bytes)}: ${now.why.parts.flat().join('')}.`);
    say(use, `Use ${store.machine.least}`);
    allow(use, noKernel(store));
  };
  const close = store.on(['budget', 'budget_bytes', 'machine', 'graph', 'offline'], show);
  return { element, close };
}
