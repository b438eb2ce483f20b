// A column of the search or run panel: a title with a note, and the content below it.
import { make } from '../core/dom.js';

// `{element, note}`; the note shows the status of the content.
export function column(title, ...children) {
  const note = make('span', { class: 'sw-note' });
  const element = make('div', { class: 'sw-col' }, make('h3', {}, title, ' ', note), ...children);
  return { element, note };
}

// A standalone panel has no header above it, so a title of its own shows its name, state and button.
export function ownTitle(bench, title, button, status, keys) {
  if (bench.root.querySelector('.sw-header, .sw-tabs')) return null;
  const { element, close } = button(bench.store, true);
  element.classList.add('small');
  const note = make('span', { class: 'note' });
  const show = () => {
    note.textContent = status(bench.store);
  };
  const stop = bench.store.on(keys, show);
  show();
  const space = make('span', { class: 'grow' });
  const bar = make('div', { class: 'sw-title' }, make('h3', { text: title }), note, space, element);
  return {
    element: bar,
    close: () => {
      stop();
      close();
    },
  };
}
