// Create elements in one line each. Text is always text: nothing from a model is parsed as HTML.

// `attributes`: by name; a function is a listener, `class` and `text` set those, false and null are omitted.
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

// Change text only if it differs, so that text selections are kept and nothing is announced twice.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// A sentence with emphasis: `parts` are strings, or lists of one string to emphasise.
export function stress(element, parts) {
  const key = JSON.stringify(parts);
  if (element.dataset.parts === key) return;
  element.dataset.parts = key;
  element.replaceChildren(...parts.map(part => (Array.isArray(part) ? make('em', { text: part[0] }) : part)));
}

// A disabled control stays in place, says why it is disabled, and remains focusable.
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
