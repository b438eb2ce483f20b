// Grey bars in place of numbers and plots that are still loading.
import { make } from '../core/dom.js';

const bar = (width, height) => {
  const element = make('span', { class: 'sw-grey' });
  Object.assign(element.style, { width, height: `${height}px` });
  return element;
};
const QUESTIONS = ['Does it fit?', 'What does it cost?', 'Why?'];

// The shape of the workbench, or of one panel.
export function skeleton(root) {
  if (root.dataset.panels === 'one') return make('div', { class: 'sw-skeleton sw-skeleton-one' }, bar('100%', 220));
  const questions = QUESTIONS.map(text =>
    make(
      'div',
      { class: 'sw-grey-answer' },
      make('span', { class: 'sw-question', text }),
      bar('62%', 16),
      bar('84%', 9),
    ),
  );
  return make(
    'div',
    { class: 'sw-skeleton' },
    make(
      'div',
      { class: 'sw-budget' },
      make('div', { class: 'sw-budget-box sw-grey-budget' }, bar('40%', 12), bar('100%', 6), bar('70%', 8)),
      make('div', { class: 'sw-answers' }, ...questions),
    ),
    make(
      'div',
      { class: 'sw-grey-panels' },
      make('div', {}, ...Array.from({ length: 9 }, () => bar('100%', 22))),
      make('div', {}, bar('100%', 290)),
    ),
  );
}
