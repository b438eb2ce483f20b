// Says that a worker is drawn in place of the whole step, and leads to another one and back.
import { WHOLE, WORKER, draw, workerName } from '../data/drawn_step.js';
import { noKernel } from '../data/action_availability.js';
import { make, say } from '../core/dom.js';

export function workerChoice(store) {
  const select = make('select', { 'aria-label': 'Worker that is shown' });
  select.addEventListener('change', () => showWorker(store, Number(select.value)));
  const back = make('button', { type: 'button', class: 'btn small', text: 'Whole step' });
  back.addEventListener('click', () => showWhole(store));
  const words = make('span', { class: 'sr', role: 'status' });
  const element = make('span', { class: 'sw-worker-choice' }, select, back, words);
  const show = () => {
    const { drawn, shownWorker } = store;
    element.hidden = drawn !== WORKER;
    say(words, element.hidden ? '' : `All panels show ${workerName(shownWorker)}.`);
    if (element.hidden) return;
    const { worker, workers } = shownWorker;
    if (select.options.length !== workers) {
      const names = Array.from({ length: workers }, (_, each) => workerName({ worker: each, workers }));
      select.replaceChildren(...names.map((text, value) => make('option', { value, text })));
    }
    select.value = worker;
    select.disabled = !!noKernel(store);
  };
  const close = store.on(['drawn', 'shownWorker', 'offline'], show);
  show();
  return { element, close };
}

export function showWorker(store, worker) {
  if (store.drawn !== WORKER && store.shownWorker?.worker === worker && noKernel(store)) draw(store, WORKER);
  else if (!noKernel(store)) store.ask({ do: 'show_worker', worker });
}

export function showWhole(store) {
  draw(store, WHOLE);
  if (!noKernel(store)) store.ask({ do: 'show_worker', worker: null });
}
