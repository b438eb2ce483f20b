// Names unique in the page, although every widget runs a script of its own: the page keeps the counters.
const PAGE = Symbol.for('stowage.names');

function page() {
  return (globalThis[PAGE] ||= { count: 0, views: new Set() });
}

// An id for an element.
export function unique(prefix) {
  page().count += 1;
  return `${prefix}-${page().count}`;
}

// A view's number among those in the page, from 1, and a function that releases it.
export function viewNumber() {
  const { views } = page();
  let number = 1;
  while (views.has(number)) number += 1;
  views.add(number);
  return [number, () => views.delete(number)];
}
