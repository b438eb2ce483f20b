// Keys that work wherever the focus is in a widget; what a panel takes for itself does not come here.
// A notebook's own shortcuts of one letter must not run meanwhile, those with Ctrl or Cmd may.
import { goToPeak, goToSelection, stepOp, stepTensor } from './actions.js';
import { showHelp } from './help.js';
import { hideTip } from './tooltip.js';

const QUIET = 'data-lm-suppress-shortcuts'; // JupyterLab and Notebook look for shortcuts no higher than this
const FAR = 0.12; // share of the view that one step pans

export function attachKeys(bench) {
  const { root } = bench;
  root.tabIndex = -1; // a click beside everything that takes the focus still lets keys work
  root.setAttribute(QUIET, 'true');
  const first = event => {
    if (root.contains(event.target)) root.toggleAttribute(QUIET, !modified(event));
  };
  const last = event => {
    if (modified(event)) return;
    event.stopPropagation();
    if (!act(event, bench)) return;
    event.preventDefault();
    // the pointer is over something else now, and points again when it moves
    hideTip(root);
    bench.store.set({ hover: null, cursor: null });
  };
  window.addEventListener('keydown', first, true);
  root.addEventListener('keydown', last);
  return () => {
    window.removeEventListener('keydown', first, true);
    root.removeEventListener('keydown', last);
  };
}

const modified = event => event.ctrlKey || event.metaKey || event.altKey;
const takesLetters = element => element.matches('input, select, textarea, [contenteditable="true"]');

// Do what a key stands for; false when it stands for nothing.
function act(event, bench) {
  const { root, store, axis } = bench;
  if (event.target.closest('dialog')) return false;
  if (event.key === 'Escape') return clear(store);
  if (takesLetters(event.target)) return false;
  const pan = axis.inner * (event.shiftKey ? 0.5 : FAR);
  const onAxis =
    axis.plan &&
    {
      w: () => axis.zoom(0.75),
      s: () => axis.zoom(4 / 3),
      a: () => axis.pan(-pan),
      d: () => axis.pan(pan),
      0: () => axis.fit(),
      f: () => goToSelection(bench),
      p: () => goToPeak(bench),
      arrowleft: () => stepOp(bench, -1),
      arrowright: () => stepOp(bench, 1),
      arrowup: () => stepTensor(bench, -1),
      arrowdown: () => stepTensor(bench, 1),
    }[event.key.toLowerCase()];
  if (onAxis) onAxis();
  else if (event.key === '?') showHelp(bench);
  else if (event.key === '/') return focusSearch(root);
  else return false;
  return true;
}

// One thing at a time: what is searched for in the graph, what is selected, then the search for plans.
function clear(store) {
  if (store.query) store.set({ query: '' });
  else if (store.selection) store.set({ selection: null });
  else if (store.search?.state === 'running') store.ask({ do: 'cancel' });
  else return false;
  return true;
}

function focusSearch(root) {
  const field = root.querySelector('.sw-graph input[type="search"]');
  field?.focus();
  field?.select();
  return Boolean(field);
}
