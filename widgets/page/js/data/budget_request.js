// The budget changes in the page first, and is requested from Python once it no longer moves. Until Python has answered
// that request, messages about other budgets must not move the slider back.
const REST = 140; // milliseconds without a move
const PATIENCE = 1500; // after which Python's budget applies again, whatever was requested

// Show another budget at once, and request it from Python once it no longer moves.
export function moveBudget(store, bytes) {
  clearTimeout(store.budget_timer);
  store.budget_timer = setTimeout(() => {
    store.ask({ do: 'budget', bytes });
    store.budget_timer = setTimeout(() => store.set({ asked_bytes: null }), PATIENCE);
  }, REST);
  store.set({ asked_bytes: bytes, budget_bytes: bytes });
}

// The state after a budget message from Python.
export function budgetAnswered(store, message) {
  const asked = store.asked_bytes ?? null;
  if (asked !== null && asked !== message.budget_bytes) return { budget: message };
  return { budget: message, budget_bytes: message.budget_bytes, asked_bytes: null };
}
