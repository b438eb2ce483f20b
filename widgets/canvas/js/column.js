// One of the columns that the search and the run are made of: a title with a note, and what stands below it.
import { make } from './dom.js';

// `{element, note}`; the note says how the thing in the title stands.
export function column(title, ...children) {
  const note = make('span', { class: 'sw-note' });
  const element = make('div', { class: 'sw-col' }, make('h3', {}, title, ' ', note), ...children);
  return { element, note };
}

// A panel by itself has no header above it, so its name, its state and its one button stand in a title of its own.
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
