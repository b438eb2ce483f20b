// Full screen: the button and the key that enlarge a widget to all of the screen, for a talk or a class.
import { draw } from '../controls/icons.js';
import { make } from '../core/dom.js';

export function toggleFullScreen({ root }) {
  if (!document.fullscreenEnabled) return false;
  if (document.fullscreenElement === root) document.exitFullscreen();
  else root.requestFullscreen();
  return true;
}

export function fullScreenButton(bench) {
  const element = make('button', { type: 'button', class: 'btn sw-full', click: () => toggleFullScreen(bench) });
  const show = () => {
    const on = document.fullscreenElement === bench.root;
    draw(element, on ? 'reduce' : 'enlarge');
    element.setAttribute('aria-label', on ? 'Leave full screen' : 'Full screen');
    element.title = on ? 'Leave full screen (E or Esc)' : 'Full screen (E)';
  };
  element.hidden = !document.fullscreenEnabled;
  document.addEventListener('fullscreenchange', show);
  show();
  return { element, close: () => document.removeEventListener('fullscreenchange', show) };
}
