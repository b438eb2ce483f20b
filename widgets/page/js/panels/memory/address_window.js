// The addresses that the map shows: a window that can be zoomed and moved within the address space.
const DEEPEST = 20000; // largest magnification of the address space

export class AddressWindow {
  constructor() {
    Object.assign(this, { full: 1, low: 0, high: 1 });
  }

  get span() {
    return this.high - this.low;
  }
  get whole() {
    return this.span >= this.full * 0.9999;
  }

  // Set the size of the address space in bytes; a window that showed all of it still does.
  setFull(full) {
    const { whole, low, high } = this;
    this.full = Math.max(1, full);
    if (whole) this.reset();
    else this.show(low, high);
  }
  reset() {
    this.low = 0;
    this.high = this.full;
  }

  show(low, high) {
    const span = Math.min(this.full, Math.max(this.full / DEEPEST, high - low));
    this.low = Math.max(0, Math.min(this.full - span, low));
    this.high = this.low + span;
  }
  // Zoom; the address at the given share of the window, from its bottom, stays in place.
  zoom(factor, share = 0.5) {
    const span = Math.max(this.full / DEEPEST, Math.min(this.full, this.span * factor));
    const centre = this.low + share * this.span;
    this.show(centre - share * span, centre + (1 - share) * span);
  }
  pan(share) {
    const by = share * this.span;
    this.show(this.low + by, this.high + by);
  }
}
