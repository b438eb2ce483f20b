// The list of keys and the glossary, in a native dialog, which traps the focus, closes with Esc and restores the focus.
import { features } from '../core/features.js';
import { unique } from '../core/unique_ids.js';
import { WORDS } from './glossary.js';

const KEYS = [
  [['W', 'S'], 'zoom in, out'],
  [['A', 'D'], 'pan'],
  [['0'], 'whole step'],
  [['F'], 'zoom to the selection'],
  [['P'], 'go to the peak'],
  [['←', '→'], 'previous, next op; in the graph: close, open'],
  [['↑', '↓'], 'larger, smaller tensor of the op; in the graph: move'],
  [['Enter'], 'select, or take a plan'],
];
const LAST = [
  [['Esc'], 'clear search, then selection, then cancel a search for plans'],
  [['Tab'], 'next panel'],
];

export function showHelp({ root }) {
  if (root.querySelector(':scope > .sw-help')) return;
  const dialog = root.appendChild(document.createElement('dialog'));
  const title = unique('sw-help');
  const row = ([keys, does]) => `<dt>${keys.map(key => `<kbd>${key}</kbd>`).join(' ')}</dt><dd>${does}</dd>`;
  const rows = [...KEYS, ...features().flatMap(({ help = [] }) => help), ...LAST];
  const words = WORDS.map(([word, means]) => `<dt>${word}</dt><dd>${means}</dd>`);
  dialog.className = 'sw-help';
  dialog.setAttribute('aria-labelledby', title);
  dialog.innerHTML =
    `<h2 id="${title}">Keys</h2><dl>${rows.map(row).join('')}</dl>` +
    `<h2>Words</h2><dl>${words.join('')}</dl>` +
    '<button type="button" class="btn">Close</button>';
  dialog.addEventListener('close', () => dialog.remove());
  dialog.addEventListener('click', event => {
    if (event.target === dialog || event.target.closest('button')) dialog.close();
  });
  dialog.showModal();
}
