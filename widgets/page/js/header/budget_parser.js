// Parse and format budgets.
import { GiB, KiB, MiB } from '../core/units.js';

const UNITS = {
  '': 1,
  b: 1,
  kib: KiB,
  mib: MiB,
  gib: GiB,
  tib: 1024 * GiB,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
};
const STEPS = 128; // least number of steps from one end of the slider to the other

// Bytes for `8GiB`, `8 GB`, `8e9` or `50%` of the step's peak; null for anything else. A share is one of the arena, and
// the part of the peak outside of it comes on top.
export function parseBudget(text, peak, outside = 0) {
  const found = /^\s*(\d+(?:\.\d*)?|\.\d+)(e\d+)?\s*(%|[a-z]*)\s*$/i.exec(text.replace(',', '.'));
  if (!found) return null;
  const amount = Number(found[1] + (found[2] || ''));
  const share = found[3] === '%';
  const size = share ? (peak - outside) / 100 : UNITS[found[3].toLowerCase()];
  const bytes = Math.floor(amount * size + (share && amount > 0 ? outside : 0));
  return bytes >= 1 && Number.isSafeInteger(bytes) ? bytes : null;
}

// The largest power of two of bytes that divides the slider into enough steps.
export function sliderStep(end) {
  return 2 ** Math.max(0, Math.floor(Math.log2(end / STEPS)));
}
