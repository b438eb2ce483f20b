// The choice of the method that searches; another one takes over from a search that is running.
import { make } from '../../core/dom.js';

const METHODS = {
  auto: ['auto', 'Time goes to what comes furthest: swapping, recomputing, or both in one plan'],
  swap: ['swap', 'Tensors leave the device and come back; each op runs once'],
  recompute: ['recompute', 'Ops run again instead of keeping what they wrote; nothing is copied'],
  joint: ['joint', 'Swapping and recomputing in one plan'],
  swapadvisor: ['SwapAdvisor', 'The genetic search of the paper'],
};

export function methodChoice(store) {
  const options = Object.entries(METHODS).map(([value, [text, title]]) => make('option', { value, text, title }));
  const select = make('select', { 'aria-label': 'Method of the search' }, ...options);
  select.addEventListener('change', () => store.ask({ do: 'method', method: select.value }));
  const show = () => {
    const { search, offline } = store;
    select.value = search?.method ?? 'auto';
    select.title = METHODS[select.value]?.[1] ?? '';
    select.disabled = offline === 'static' || !search || search.state === 'nothing';
  };
  const close = store.on(['search', 'offline'], show);
  show();
  return { element: select, close };
}
