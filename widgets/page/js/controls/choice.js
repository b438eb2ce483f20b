// A choice between a few options: a row of toggle buttons bound to a key of the store.
import { make } from '../core/dom.js';

// `options`: pairs of a value and its label; returns the element and a function that disposes of it.
export function choice(store, key, options, label) {
  const buttons = options.map(([value, text]) =>
    make('button', { type: 'button', text, 'data-value': value, click: () => store.set({ [key]: value }) }),
  );
  const show = () => {
    for (const button of buttons) button.setAttribute('aria-pressed', String(button.dataset.value === store[key]));
  };
  show();
  return [make('div', { class: 'seg', role: 'group', 'aria-label': label }, ...buttons), store.on([key], show)];
}
