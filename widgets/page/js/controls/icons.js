// Drawn symbols of buttons, which fonts do not all have. They are pictures only: a button's name is its label.
const PATHS = {
  play: '<path d="M4 2.5v11l9-5.5z" fill="currentColor"/>',
  pause: '<path d="M4 3h3v10H4zM9 3h3v10H9z" fill="currentColor"/>',
  enlarge: '<path d="M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4" fill="none" stroke="currentColor" stroke-width="1.6"/>',
  reduce: '<path d="M6 2v4H2M14 6h-4V2M10 14v-4h4M2 10h4v4" fill="none" stroke="currentColor" stroke-width="1.6"/>',
};

export function draw(element, name) {
  element.innerHTML = `<svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">${PATHS[name]}</svg>`;
}
