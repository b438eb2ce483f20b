// The export menu: the plan in several formats, written by Python, and pictures, made by the page.
import { allow, allowed, make } from '../core/dom.js';
import { shownPart } from '../core/shown_part.js';
import { canvasOf, svgOf } from './picture.js';
import { noKernel } from '../data/action_availability.js';
import { save } from '../data/receive.js';
import { standing } from '../data/budget_answers.js';

const FILES = [
  ['plan', 'Plan', 'JSON'],
  ['trace', 'Trace of the plan, for Perfetto', 'JSON'],
  ['run_trace', 'Trace of the run, for Perfetto', 'JSON'],
  ['csv', 'Buffers, for MiniMalloc', 'CSV'],
  ['html', 'This workbench, to send', 'HTML'],
];
const VIEWS = [
  ['workbench', 'Everything shown here', '.sw-grid'],
  ['header', 'Budget and verdict', '.sw-header'],
  ['graph', 'Graph', '.sw-graph'],
  ['memory', 'Memory', '.sw-memory'],
  ['holders', 'Who holds memory', '.sw-holders'],
  ['streams', 'Streams', '.sw-streams'],
  ['search', 'Search', '.sw-search-cols', 'search'],
  ['run', 'Run', '.sw-run-cols', 'run'],
];
const EDGE = 8; // pixels to the edge of the window
const TALLEST = 8000; // pixels of a picture; twice as many must still fit a canvas

export function exportMenu(bench) {
  const { store } = bench;
  const button = make('button', {
    type: 'button',
    class: 'btn sw-do-export',
    text: 'Export',
    'aria-haspopup': 'dialog',
  });
  const menu = make('div', { class: 'sw-export', role: 'dialog', 'aria-label': 'Export', popover: 'auto' });
  const element = make('div', {}, button, menu);
  if ('popoverTargetElement' in button) button.popoverTargetElement = menu;
  const files = FILES.map(([format, label, suffix]) => fileRow(bench, format, label, suffix));
  // the menu is fixed to the window, so it closes when the page scrolls
  const scrolled = event => {
    if (!menu.contains(event.target)) menu.hidePopover();
  };
  const close = () => window.removeEventListener('scroll', scrolled, true);
  menu.addEventListener('beforetoggle', event => {
    close();
    if (event.newState !== 'open') return;
    window.addEventListener('scroll', scrolled, true);
    menu.replaceChildren(
      make('h3', { text: 'Files' }),
      ...files.map(file => file.element),
      make('h3', { text: 'Pictures' }),
      ...pictureRows(bench),
    );
    for (const file of files) file.show();
    place(menu, button);
  });
  menu.addEventListener('keydown', event => {
    event.stopPropagation(); // Esc only closes the menu
    step(event, menu);
  });
  menu.addEventListener('click', event => {
    const pressed = event.target.closest('button');
    if (pressed && allowed(pressed)) menu.hidePopover();
  });
  return { element, close };
}

function fileRow(bench, format, label, suffix) {
  const { store } = bench;
  const element = make(
    'button',
    { type: 'button', class: 'sw-export-file' },
    make('span', { text: label }),
    make('span', { text: suffix }),
  );
  element.addEventListener('click', () => {
    if (!allowed(element)) return;
    store.ask({ do: 'export', format, ...(format === 'html' ? { shown: shownPart(bench) } : {}) });
  });
  const reason = () => {
    if (noKernel(store)) return noKernel(store);
    if (format === 'run_trace') return store.run?.step_seconds.length ? '' : 'Nothing has run yet';
    return standing(store).plan ? '' : 'There is no plan at this budget';
  };
  return { element, show: () => allow(element, format === 'html' ? noKernel(store) : reason()) };
}

// One row per view, with a button for a bitmap and one for SVG.
function pictureRows(bench) {
  const { root } = bench;
  return VIEWS.filter(([, , selector]) => root.querySelector(selector)).map(([name, label, selector, tab]) => {
    const button = (format, write) =>
      make('button', {
        type: 'button',
        class: 'btn small',
        text: format,
        'aria-label': `${label}, ${format}`,
        click: () => {
          const view = viewOf(bench, selector, tab);
          const rollUp = name === 'graph' ? unroll(view) : () => {};
          write(view, fileName(bench, name, format.toLowerCase()));
          rollUp();
        },
      });
    return make(
      'div',
      { class: 'sw-export-row' },
      make('span', { text: label }),
      button('PNG', savePng),
      button('SVG', (element, filename) => saveSvg(element, filename, label)),
    );
  });
}

// The element of a view; a view in a hidden tab is brought to the front and laid out at once.
function viewOf({ root, store }, selector, tab) {
  if (tab) store.set({ tab });
  const element = root.querySelector(selector);
  for (const host of element.querySelectorAll('.plot')) host.plot.resize();
  return element;
}

// Show the whole graph, not only the boxes that fit; returns a function that restores it.
function unroll(section) {
  const host = section.querySelector('.plot');
  const { plot } = host;
  const height = Math.min(plot.view?.wholeHeight ?? 0, TALLEST);
  if (height <= plot.height) return () => {};
  const before = plot.view.scroll;
  section.style.height = 'auto';
  Object.assign(host.style, { flex: 'none', height: `${height}px` });
  plot.resize();
  return () => {
    section.style.height = host.style.flex = host.style.height = '';
    plot.view.scroll = before;
    plot.resize();
  };
}

function fileName({ store }, view, suffix) {
  const name = (store.graph?.name ?? '').replace(/[^\p{L}\p{N}._-]+/gu, '-').replace(/^[-.]+|-+$/g, '');
  return `${name || 'stowage'}-${view}.${suffix}`;
}

function savePng(element, filename) {
  canvasOf(element).toBlob(blob => save({ filename, mime: 'image/png' }, blob), 'image/png');
}

function saveSvg(element, filename, label) {
  save({ filename, mime: 'image/svg+xml' }, svgOf(element, label));
}

// Place the menu below the button, or above it if there is more room; never below the scrolling area of the page.
function place(menu, button) {
  const box = button.getBoundingClientRect();
  let end = innerHeight;
  for (let frame = button.closest('.sw'); (frame = frame.parentElement) !== document.body;) {
    if (/auto|scroll/.test(getComputedStyle(frame).overflowY))
      end = Math.min(end, frame.getBoundingClientRect().bottom);
  }
  const below = end - box.bottom - 2 * EDGE;
  const up = below < 280 && box.top > below;
  Object.assign(menu.style, {
    right: `${Math.max(EDGE, document.documentElement.clientWidth - box.right)}px`,
    top: up ? 'auto' : `${box.bottom + 4}px`,
    bottom: up ? `${innerHeight - box.top + 4}px` : 'auto',
    maxHeight: `${Math.max(160, up ? box.top - 2 * EDGE : below)}px`,
  });
}

function step(event, menu) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by) return;
  const all = [...menu.querySelectorAll('button')];
  const next = all[all.indexOf(document.activeElement) + by];
  if (!next) return;
  next.focus();
  event.preventDefault();
}
