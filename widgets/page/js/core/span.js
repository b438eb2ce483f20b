// A span of a step that is selected to be summed up: of time, of addresses, or of both.
import { addressesText, secondsText } from './units.js';

const TIE = 1e-9; // share of the step that is left out at both ends, so that what only touches a span is not in it

const ordered = ([a, b]) => (a <= b ? [a, b] : [b, a]);

// `time`: two shares of the step, so that a span stays where it is drawn when the plan changes; `addresses`: two of
// bytes. Either is null for all. The second of two is the end that keys move; it may be the lower one.
// Returns the ends in seconds of a plan and in bytes.
export function boundsOf({ time, addresses }, plan) {
  const { step_seconds: step } = plan;
  const [from, to] = time ? ordered(time).map(share => share * step) : [-Infinity, Infinity];
  const [low, high] = addresses ? ordered(addresses) : [-Infinity, Infinity];
  return { from: from + TIE * step, to: to - TIE * step, low, high };
}

// `12.3 ms to 14.5 ms, 4 to 9.25 GiB`.
export function spanText({ time, addresses }, plan) {
  const seconds = time && ordered(time).map(share => secondsText(share * plan.step_seconds, 3));
  return [seconds?.join(' to '), addresses && addressesText(...ordered(addresses))].filter(Boolean).join(', ');
}

// The span that a view shows: the one that is being dragged, else the selected one; null if there is none.
export const shownSpan = ({ draggedSpan, selection }) =>
  draggedSpan ?? (selection?.type === 'span' ? selection : null);
