// export
import { make } from './dom.js';

export function exportMenu() {
  return { element: make('button', { type: 'button', class: 'btn', text: 'Export' }), close: () => {} };
}
