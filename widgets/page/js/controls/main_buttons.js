// The two buttons that start and stop work, and which of them is primary. They are in the header, or in the title of a
// standalone search or run panel.
import { allow, allowed, make, say } from '../core/dom.js';
import { noRun, noSearch, noStep, resumable, running, searching } from '../data/availability.js';
import { isIdeal, standing } from '../data/verdict.js';

const SEARCHED = new Set(['done', 'paused']); // searched for the full time
const WATCHED = ['search', 'run', 'budget', 'budget_bytes', 'plan', 'machine', 'offline', 'graph'];

// The primary button: the one that stops work, else the one the budget calls for; never both.
function primary(store) {
  if (running(store)) return 'run';
  if (searching(store)) return 'search';
  const { verdict, plan } = standing(store);
  const ideal = plan && isIdeal(plan.step_seconds, plan.ideal_seconds);
  const best = ideal || verdict === 'fits' || (verdict === 'swap' && SEARCHED.has(store.search?.state));
  if (best && !noRun(store)) return 'run';
  return ideal || noSearch(store) ? null : 'search';
}

// `alone`: there is no other button beside it.
export function searchButton(store, alone = false) {
  return button(store, 'search', alone, {
    label: () => (searching(store) ? 'Cancel' : resumable(store) ? 'Resume' : 'Search'),
    stopping: 'Cancelling',
    busy: searching,
    reason: noSearch,
    press: () => {
      store.set({ tab: 'search' });
      store.ask({ do: searching(store) ? 'cancel' : resumable(store) ? 'resume' : 'search' });
    },
  });
}

export function runButton(store, alone = false) {
  return button(store, 'run', alone, {
    label: () => (running(store) ? 'Stop' : 'Run on this CPU'),
    stopping: 'Stopping',
    busy: running,
    reason: noRun,
    press: () => {
      const stop = running(store);
      store.set({ tab: 'run' });
      store.ask(stop ? { do: 'cancel_run' } : { do: 'run', steps: 3, check: true });
    },
  });
}

// Beside the run button, why nothing can be run.
export function runReason(store) {
  const element = make('span', { class: 'sw-reason medium-hide', 'aria-hidden': 'true' });
  const show = () => {
    say(element, noStep(store) ? 'no step to run' : '');
    element.title = noStep(store);
  };
  const close = store.on(['graph'], show);
  show();
  return { element, close };
}

function button(store, name, alone, { label, stopping, busy, reason, press }) {
  let pressed = false; // between the request to stop and the end
  const element = make('button', {
    type: 'button',
    class: `btn sw-do-${name}`,
    click: () => {
      if (!allowed(element)) return;
      pressed = busy(store);
      press();
      show();
    },
  });
  const show = () => {
    pressed = pressed && busy(store);
    say(element, pressed ? stopping : label());
    element.classList.toggle('primary', alone ? !reason(store) : primary(store) === name);
    allow(element, pressed ? 'It stops after what it is doing now' : reason(store));
  };
  const close = store.on(WATCHED, show);
  show();
  return { element, close };
}
