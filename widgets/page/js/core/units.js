// Format numbers: always with a unit, thousands with a comma.
export const KiB = 1024;
export const MiB = 1024 ** 2;
export const GiB = 1024 ** 3;
const TiB = 1024 ** 4;

const group = text => text.replace(/\B(?=(\d{3})+(?!\d))/g, ',');

export const countText = n => group(Math.round(n).toString());

// The unit follows the size: 12 B, 3.14 KiB, 36.0 MiB, 628 MiB, 31.50 GiB; as `bytes_label` of planner/units.py.
export function bytesText(bytes) {
  const { name, size } = bytesUnit(Math.abs(bytes));
  const value = bytes / size;
  const whole = Math.abs(value);
  const digits = size === 1 || (whole >= 99.95 && size < GiB) ? 0 : whole >= 9.995 && size < GiB ? 1 : 2;
  return `${value.toFixed(digits)} ${name}`;
}

// With enough digits to distinguish nearby values: 36.25 MiB, 10.4209 GiB.
export function exactBytes(bytes) {
  const { name, size } = bytesUnit(Math.abs(bytes));
  return `${Number((bytes / size).toFixed(size >= GiB ? 4 : 2))} ${name}`;
}

// Both ends of a range of addresses, exactly and in one unit.
export function addressesText(low, high) {
  const { name, size } = bytesUnit(high);
  const [a, b] = [low, high].map(bytes => Number((bytes / size).toFixed(size >= GiB ? 4 : 2)));
  return `${a} to ${b} ${name}`;
}

// One unit for both ends of a range, so that they are easy to compare: that of the larger end.
// From 1000 of a unit on, the next unit is used: 1000 of a unit is 0.98 of the next.
export function bytesUnit(largest) {
  if (largest >= 999.5 * GiB) return { name: 'TiB', size: TiB };
  if (largest >= 999.5 * MiB) return { name: 'GiB', size: GiB };
  if (largest >= 999.5 * KiB) return { name: 'MiB', size: MiB };
  return largest >= KiB ? { name: 'KiB', size: KiB } : { name: 'B', size: 1 };
}

// Two amounts in the unit of the larger: 28.7 of 14.9 GiB.
export function ofText(bytes, whole) {
  const { name, size } = bytesUnit(Math.max(bytes, whole));
  const [a, b] = [bytes, whole].map(each => (each / size).toFixed(each >= 0.0995 * size ? 1 : 3));
  return `${a} of ${b} ${name}`;
}

// As many decimals for every amount of a unit, so that a number that changes keeps its width.
export function secondsText(seconds, digits = 2) {
  const size = Math.abs(seconds);
  if (size >= 1 || size === 0) return seconds.toFixed(size ? digits : 0) + ' s';
  if (size >= 1e-3) return (seconds * 1e3).toFixed(size >= 1e-2 ? 1 : 2) + ' ms';
  return (seconds * 1e6).toFixed(size >= 1e-5 ? 0 : 1) + ' µs';
}

export function percentText(share, digits = 1) {
  return (100 * share).toFixed(digits) + ' %';
}

// With its sign, for differences: +6.6 %, −1.0 %.
export function changeText(share) {
  return (share >= 0 ? '+' : '−') + percentText(Math.abs(share));
}

// `1 op`, `1,500 ops`.
export const plural = (n, noun) => `${countText(n)} ${noun}${n === 1 ? '' : 's'}`;

// Text from a model may contain anything; it is shown, never parsed as HTML.
export function escape(text) {
  return String(text).replace(
    /[&<>"']/g,
    c => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })[c],
  );
}
