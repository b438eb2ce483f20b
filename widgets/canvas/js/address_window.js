// Which addresses the map shows: a window that can be enlarged and moved within all there are.
const DEEPEST = 20000; // times that all addresses can be enlarged

export class AddressWindow {
  constructor() { Object.assign(this, { full: 1, low: 0, high: 1 }); }

  get whole() { return this.high - this.low >= this.full * 0.9999; }

  // There are so many bytes of addresses; what was shown whole still is.
  setFull(full) {
    const { whole, low, high } = this;
    this.full = Math.max(1, full);
    if (whole) this.reset(); else this.show(low, high);
  }
  reset() { this.low = 0; this.high = this.full; }

  show(low, high) {
    const span = Math.min(this.full, Math.max(this.full / DEEPEST, high - low));
    this.low = Math.max(0, Math.min(this.full - span, low));
    this.high = this.low + span;
  }
  // The address at a share of the window, from its bottom, stays where it is.
  zoom(factor, share = 0.5) {
    const span = Math.max(this.full / DEEPEST, Math.min(this.full, (this.high - this.low) * factor));
    const centre = this.low + share * (this.high - this.low);
    this.show(centre - share * span, centre + (1 - share) * span);
  }
  pan(share) {
    const by = share * (this.high - this.low);
    this.show(this.low + by, this.high + by);
  }
  // Bring addresses into view that are not.
  reveal(low, high) {
    if (high > this.low && low < this.high) return;
    const half = (this.high - this.low) / 2;
    this.show((low + high) / 2 - half, (low + high) / 2 + half);
  }
}
