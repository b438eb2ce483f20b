// The three answers under the header: does it fit, what does it cost, why; each links to the view it refers to.
import { goToPeak, goToStall } from '../core/navigation.js';
import { moveBudget } from '../data/budget_request.js';
import { allow, allowed, make, say, stress } from '../core/dom.js';
import { noKernel } from '../data/action_availability.js';
import { bytesText } from '../core/units.js';
import { answers } from '../data/budget_answers.js';

const WATCHED = ['machine', 'budget', 'budget_bytes', 'plan', 'samples', 'search', 'offline', 'graph'];
const STALL = 'Go to the longest stall';
const PEAK = 'Go to the peak';

export function answersRow(bench) {
  const { store } = bench;
  const fit = answer('Does it fit?', store);
  const cost = answer('What does it cost?', store, () => goToStall(bench));
  const why = answer('Why?', store, () => goToPeak(bench));
  const element = make('div', { class: 'sw-answers' }, fit.element, cost.element, why.element);
  const show = () => {
    const now = answers(store);
    element.dataset.verdict = now?.verdict ?? '';
    fit.show(now?.fit);
    cost.show(now?.cost, store.plan?.stall_start.length ? '' : 'No op waits for a copy in what is shown', STALL);
    why.show(now?.why, store.plan?.slots ? '' : 'There is no plan to look at yet', PEAK);
  };
  const close = store.on(WATCHED, show);
  show();
  return { element, close };
}

// One answer; if `go` is given, its text is a button.
function answer(question, store, go) {
  const head = make('span', { class: 'sw-head-text' });
  const unit = make('small');
  const asked = make('span', { class: 'sw-question', text: question });
  const answered = make('span', { class: 'sw-answer' }, head, unit);
  const sentence = make('span', { class: 'sw-sentence' });
  const use = make('button', { type: 'button', class: 'btn sw-use', hidden: true });
  let bytes = null;
  use.addEventListener('click', () => {
    if (allowed(use)) moveBudget(store, bytes);
  });
  const face = make(go ? 'button' : 'div', { class: 'sw-face', type: go ? 'button' : null }, asked, answered, sentence);
  if (go)
    face.addEventListener('click', () => {
      if (allowed(face)) go();
    });
  const show = (now, reason = '', title = '') => {
    say(head, now?.head ?? '–');
    say(unit, now?.unit ? ` ${now.unit}` : '');
    stress(sentence, now?.parts ?? []);
    sentence.title = sentence.textContent;
    bytes = now?.use ?? null;
    use.hidden = bytes === null;
    if (bytes !== null) {
      say(use, `Use ${bytesText(bytes)}`);
      allow(use, noKernel(store));
    }
    if (go) allow(face, reason, title);
  };
  return { element: make('div', { class: 'sw-answer-box' }, face, use), show };
}
