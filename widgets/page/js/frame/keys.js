// Keys that work wherever the focus is in a widget; keys handled by a panel do not reach this code.
// A notebook's own single-letter shortcuts must not run meanwhile; those with Ctrl or Cmd may, but for undo and redo.
import { goToPeak, goToSelection, stepOp, stepTensor } from '../core/navigation.js';
import { features } from '../core/features.js';
import { showHelp } from '../controls/shortcut_list.js';
import { hideTip } from '../plots/tooltip.js';

const QUIET = 'data-lm-suppress-shortcuts'; // JupyterLab and Notebook look for shortcuts no higher than this
const FAR = 0.12; // share of the view that one step pans

export function attachKeys(bench) {
  const { root } = bench;
  root.tabIndex = -1; // keys also work after a click on something that cannot be focused
  root.setAttribute(QUIET, 'true');
  const first = event => {
    if (root.contains(event.target)) root.toggleAttribute(QUIET, !modified(event) || !!undoing(event));
  };
  const last = event => {
    if (modified(event) && !undoing(event)) return;
    event.stopPropagation();
    if (!act(event, bench)) return;
    event.preventDefault();
    // the pointer is over something else now; hovering resumes when it moves
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
// Ctrl or Cmd with Z, and with Shift too, as the names of keys of features; text that is edited undoes its own changes.
const undoing = ({ key, ctrlKey, metaKey, altKey, shiftKey, target }) =>
  (ctrlKey || metaKey) && !altKey && key.toLowerCase() === 'z' && !takesLetters(target) && (shiftKey ? 'redo' : 'undo');
const takesLetters = element => element.matches('input, select, textarea, [contenteditable="true"]');

// What Space presses or opens.
const isPressed = element => element.closest('button, summary, a[href], [role="option"], [role="tab"]');

// Carry out the action of a key; returns false if it has none.
function act(event, bench) {
  const { axis } = bench;
  if (event.target.closest('dialog')) return false;
  if (undoing(event)) return actFeature(undoing(event), bench);
  if (event.key === 'Escape') return actFeature('Escape', bench);
  if (takesLetters(event.target) || (event.key === ' ' && isPressed(event.target))) return false;
  if (event.shiftKey && actFeature(`Shift-${event.key}`, bench)) return true;
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
  else return actFeature(event.key, bench);
  return true;
}

// The first feature that has something to do for a key does it, so that Esc ends one thing at a time.
const actFeature = (key, bench) => features().some(({ keys }) => keys?.[key]?.(bench));
