// Select a span by dragging with Shift; without Shift a drag moves the view, and a click with Shift is a click.
import { hideTip } from '../../plots/tooltip.js';

const CLICK = 3; // pixels of movement that still count as a click
const FLAT = 8; // a drag that is lower or narrower than this has one dimension

// `on`: `free(x, y)`, whether a drag from there selects `{time, addresses}`, or null; `addressAt(y)`; `click(event)`.
export function attachSpanDrag(plot, { store, axis }, on) {
  const { host } = plot;
  let drag = null;

  const spanTo = ([x, y]) => {
    const [wide, tall] = [Math.abs(x - drag.x), Math.abs(y - drag.y)];
    const { free } = drag;
    const time = free.time && (!free.addresses || wide >= FLAT || wide >= tall);
    const addresses = free.addresses && (!free.time || tall >= FLAT || tall > wide);
    return {
      type: 'span',
      time: time ? [drag.share, shareAt(x)] : null,
      addresses: addresses ? [drag.address, on.addressAt(y)] : null,
    };
  };
  const shareAt = x => {
    const inside = Math.max(axis.gutter, Math.min(axis.gutter + axis.inner, x));
    return axis.secondsAt(inside) / store.plan.step_seconds;
  };

  // in the phase of capture, before what drags without Shift and what points
  const listen = (kind, act) =>
    host.addEventListener(
      kind,
      event => {
        if (act(event)) event.stopPropagation();
      },
      true,
    );
  // the page would select the text from its last click to here
  listen('mousedown', event => {
    if (!drag) return;
    event.preventDefault();
    host.focus({ preventScroll: true });
  });
  listen('pointerdown', event => {
    if (event.button || !event.shiftKey || !store.plan?.slots || !(store.plan.step_seconds > 0)) return false;
    const [x, y] = plot.at(event);
    const free = on.free(x, y);
    if (!free) return false;
    drag = { x, y, free, share: shareAt(x), address: free.addresses ? on.addressAt(y) : 0, moved: false };
    host.setPointerCapture(event.pointerId);
    return true;
  });
  listen('pointermove', event => {
    if (!drag) return false;
    const [x, y] = plot.at(event);
    if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) <= CLICK) return true;
    if (drag.moved && !store.draggedSpan) return true; // it was cancelled by a key
    if (!drag.moved) {
      drag.moved = true;
      hideTip(host);
      store.set({ selection: null, hover: null, cursor: null });
    }
    store.set({ draggedSpan: spanTo([x, y]) });
    return true;
  });
  listen('pointerup', event => {
    if (!drag) return false;
    const { draggedSpan } = store;
    if (!drag.moved) on.click(event);
    else if (draggedSpan) store.set({ draggedSpan: null, selection: draggedSpan });
    drag = null;
    return true;
  });
  listen('pointercancel', () => {
    if (!drag) return false;
    drag = null;
    store.set({ draggedSpan: null });
    return true;
  });
}
