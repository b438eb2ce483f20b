// Wheel and drag on a plot with the time axis, as in trace viewers; the keys for it work in the whole widget.
const CLICK = 3; // pixels of movement that still count as a click

// `on` gets the events that the axis does not use: `wheel(event)` and `down(event)` return whether they handled the
// event; `move`, `click` and `leave` report the pointer, and `drag` the pixels that a drag advanced.
export function attachTime(axis, plot, on = {}) {
  const host = plot.host;
  let drag = null;
  host.addEventListener(
    'wheel',
    event => {
      const focused = document.activeElement === host || event.ctrlKey || event.metaKey;
      if (!focused || !axis.plan) return; // the page scrolls
      const { from, to } = axis;
      let taken = on.wheel?.(event);
      if (!taken) {
        if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) axis.pan(event.deltaX);
        else axis.zoom(Math.exp(event.deltaY * 0.0022), plot.at(event)[0]);
        // at either end the page scrolls; with a modifier key the page would zoom
        taken = event.ctrlKey || event.metaKey || axis.from !== from || axis.to !== to;
      }
      if (taken) event.preventDefault();
    },
    { passive: false },
  );
  host.addEventListener('pointerdown', event => {
    if (event.button || !axis.plan || on.down?.(event)) return;
    drag = { x: event.clientX, y: event.clientY, moved: false };
    host.setPointerCapture(event.pointerId);
  });
  host.addEventListener('pointermove', event => {
    if (!axis.plan) return;
    if (!drag) {
      on.move?.(event);
      return;
    }
    const by = [drag.x - event.clientX, drag.y - event.clientY];
    if (!drag.moved && Math.hypot(...by) <= CLICK) return;
    drag = { x: event.clientX, y: event.clientY, moved: true };
    axis.pan(by[0]);
    on.drag?.(...by);
  });
  host.addEventListener('pointerup', event => {
    if (drag && !drag.moved) on.click?.(event);
    drag = null;
  });
  host.addEventListener('pointercancel', () => {
    drag = null;
  });
  host.addEventListener('pointerleave', event => on.leave?.(event));
  host.addEventListener('dblclick', () => {
    if (axis.plan) axis.fit();
  });
}
