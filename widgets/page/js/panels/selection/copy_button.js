// A button whose text is copied by a click. It says so for a moment, and keeps its width meanwhile.
import { make, say } from '../../core/dom.js';

const LASTING = 1500; // milliseconds

// The element and a function that sets its text; without a text it is hidden.
export function copyButton() {
  let [text, timer] = ['', 0];
  const button = make('button', { type: 'button', class: 'copy', 'aria-live': 'off' });
  const spoken = make('span', { class: 'sr', role: 'status' });
  const show = words => {
    clearTimeout(timer);
    button.style.minWidth = words ? `${button.offsetWidth}px` : '';
    say(button, words || text);
    say(spoken, words);
    if (words) timer = setTimeout(show, LASTING, '');
  };
  button.addEventListener('click', async () => show((await copied(text, button)) ? 'copied' : 'not copied'));
  const set = what => {
    if (what === text) return;
    text = what;
    button.hidden = !what;
    button.title = `Copy ${what}`;
    show('');
  };
  button.hidden = true;
  return [button, spoken, set];
}

// A page without https has no clipboard, but may copy what is selected.
async function copied(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = button.parentElement.appendChild(make('textarea', { class: 'sr', text }));
    field.select();
    const done = document.execCommand('copy');
    field.remove();
    button.focus();
    return done;
  }
}
