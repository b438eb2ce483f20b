// The buttons that start and stop work, and which of them is primary. They are in the header, or in the title of a
// standalone panel.
import { allow, allowed, make, say } from '../core/dom.js';
import { tabs } from '../core/features.js';

const WATCHED = ['budget', 'budget_bytes', 'plan', 'machine', 'offline', 'graph', 'drawn', 'workerNews'];

// The name of the primary button: the one that stops work, else the one the budget calls for; never two. What uses the
// result of other work comes after it, and before it here.
function primary(store) {
  const latest = [...tabs()].reverse();
  const found = latest.find(({ tab }) => tab.busy(store)) ?? latest.find(({ tab }) => tab.wanted(store));
  return found?.name ?? null;
}

// A function `(store, alone)` that makes the button of a tab; `alone`: there is no other button beside it.
// `press(store)` returns the request that it sends.
export function mainButton(name, { label, stopping, busy, reason, press }) {
  return (store, alone = false) => {
    let pressed = false; // between the request to stop and the end
    const element = make('button', {
      type: 'button',
      class: `btn sw-do-${name}`,
      click: () => {
        if (!allowed(element)) return;
        pressed = busy(store);
        const request = press(store);
        store.set({ tab: name });
        store.ask(request);
        show();
      },
    });
    const show = () => {
      pressed = pressed && busy(store);
      say(element, pressed ? stopping : label(store));
      element.classList.toggle('primary', alone ? !reason(store) : primary(store) === name);
      allow(element, pressed ? 'It stops after what it is doing now' : reason(store));
    };
    const close = store.on([...WATCHED, ...tabs().map(tab => tab.name)], show);
    show();
    return { element, close };
  };
}
