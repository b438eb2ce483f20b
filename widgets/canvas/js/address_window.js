// Which addresses the map shows: a window that can be enlarged and moved within all there are.
const DEEPEST = 20000; // times that all addresses can be enlarged

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

  // There are so many bytes of addresses; what was shown whole still is.
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
  // The address at a share of the window, from its bottom, stays where it is.
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
