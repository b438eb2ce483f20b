// Plays the step: selects one op after another of those in view, in the order and, but for its speed, the time of the
// plan's slots. What is in view takes about as long however much it is, so zooming in slows down.
const SECONDS = 20; // for everything in view
const SLOWEST = 0.5; // seconds per op

export class Player {
  constructor({ root, store, axis }) {
    Object.assign(this, { root, store, axis, frame: 0, slot: -1, selected: null });
    this.stops = [
      store.on(['plan'], () => this.pause()),
      store.on(['selection'], () => {
        if (store.selection !== this.selected) this.pause();
      }),
    ];
  }

  toggle() {
    if (this.store.playing) this.pause();
    else this.play();
  }

  // Begin with the selected op, or with the first in view if that is not.
  play() {
    const { plan, focus } = this.store;
    if (!plan?.slots) return;
    const [first, last] = this.inView();
    const chosen = focus?.type === 'op' ? plan.slotOf(focus.id) : -1;
    const from = chosen >= first && chosen < last ? chosen : first;
    const each = 1000 * Math.min(SLOWEST, SECONDS / (last - first + 1));
    let begun = null;
    const next = now => {
      begun ??= now;
      const slot = from + Math.floor((now - begun) / each);
      if (slot > this.inView()[1] || !this.root.isConnected) {
        this.pause();
        return;
      }
      this.show(slot);
      this.frame = requestAnimationFrame(next);
    };
    this.store.set({ playing: true });
    this.frame = requestAnimationFrame(next);
  }

  pause() {
    if (!this.store.playing) return;
    cancelAnimationFrame(this.frame);
    Object.assign(this, { slot: -1, selected: null });
    this.store.set({ playing: false, cursor: null });
  }

  // The first and the last slot in view.
  inView() {
    const { axis, store } = this;
    return [axis.from, axis.to].map(place => store.plan.slotAt(axis.seconds(place)));
  }

  show(slot) {
    if (slot === this.slot) return;
    const { plan } = this.store;
    this.slot = slot;
    this.selected = { type: 'op', id: plan.order[slot] };
    this.store.set({ selection: this.selected, cursor: (plan.op_start[slot] + plan.op_stop[slot]) / 2 });
  }

  close() {
    this.pause();
    for (const stop of this.stops) stop();
  }
}
