// A choice of a few: buttons side by side, one of which is pressed, that follow a key of the store.
import { make } from './dom.js';

// `options`: pairs of a value and its label; returns the element and what ends it.
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
