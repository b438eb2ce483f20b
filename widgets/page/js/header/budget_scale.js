// Positions of budgets on the slider, from 0 to 1. Only budgets up to a little over the step's peak make a difference;
// if the device has much more memory, a second, shorter part of the scale covers it, behind a break.
const NEAR = 0.84; // share of the slider for budgets that make a difference
const SAME = 1.3; // a device up to this many times as large needs no second part

// `{broken, place(bytes), bytes(place)}` for a machine; `broken` is the position of the break, or null.
export function budgetScale({ near_bytes: near, slider_bytes: end }) {
  if (end <= SAME * near) {
    return { broken: null, place: bytes => within(bytes / end), bytes: place => place * end };
  }
  return {
    broken: NEAR,
    place: bytes => within(bytes <= near ? (NEAR * bytes) / near : NEAR + ((1 - NEAR) * (bytes - near)) / (end - near)),
    bytes: place => (place <= NEAR ? (place / NEAR) * near : near + ((place - NEAR) / (1 - NEAR)) * (end - near)),
  };
}

const within = place => Math.max(0, Math.min(1, place));
