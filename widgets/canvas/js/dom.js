// Elements made in one line each. Text is always text: nothing from a model is read as HTML.

// `attributes`: by name; a function is a listener, `class` and `text` are what they say, false and null are left out.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (name === 'text') element.textContent = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter(child => child !== null));
  return element;
}

// Change text only where it differs, so that what a reader has selected or heard stays.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// A sentence in which some words weigh more: `parts` are strings, or lists of one string to stress.
export function stress(element, parts) {
  const key = JSON.stringify(parts);
  if (element.dataset.parts === key) return;
  element.dataset.parts = key;
  element.replaceChildren(...parts.map(part => (Array.isArray(part) ? make('em', { text: part[0] }) : part)));
}

// A control stays in its place when it cannot be used and says why; it can still be reached, to be asked.
export function allow(control, reason, title = '') {
  if (reason) {
    control.setAttribute('aria-disabled', 'true');
    control.setAttribute('aria-description', reason);
  } else {
    control.removeAttribute('aria-disabled');
    control.removeAttribute('aria-description');
  }
  control.title = reason || title;
}

export const allowed = control => control.getAttribute('aria-disabled') !== 'true';
