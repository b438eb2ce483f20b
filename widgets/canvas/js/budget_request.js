// The budget moves in the page first and is asked of Python when it rests. An answer to an earlier request, or none for
// the same budget yet, must not move the slider back under the hand.
const REST = 140; // milliseconds without a move
const PATIENCE = 1500; // until what Python says counts again, whatever was asked

// Show another budget at once and ask Python for it once it rests.
export function moveBudget(store, bytes) {
  clearTimeout(store.budget_timer);
  store.budget_timer = setTimeout(() => {
    store.ask({ do: 'budget', bytes });
    store.budget_timer = setTimeout(() => store.set({ asked_bytes: null }), PATIENCE);
  }, REST);
  store.set({ asked_bytes: bytes, budget_bytes: bytes });
}

// The state that follows from Python's message about a budget.
export function budgetAnswered(store, message) {
  const asked = store.asked_bytes ?? null;
  if (asked !== null && asked !== message.budget_bytes) return { budget: message };
  return { budget: message, budget_bytes: message.budget_bytes, asked_bytes: null };
}
