// The module graph for screen readers: a tree whose items are the boxes around the current one.
// The plot keeps the focus; the current item is announced to assistive technology.
import { unique } from '../../core/unique_ids.js';

const AROUND = 12;

export class TreeItems {
  // `describe(row)`: a row in words.
  constructor(host, describe) {
    this.describe = describe;
    this.id = unique('sw-tree');
    this.list = host.appendChild(document.createElement('div'));
    this.list.className = 'sr';
    this.list.setAttribute('role', 'presentation');
    this.host = host;
  }

  show(rows, at, selected) {
    const from = Math.max(0, at - AROUND);
    const items = rows.slice(from, at + AROUND + 1).map((row, k) => {
      const item = document.createElement('div');
      item.id = `${this.id}-${from + k}`;
      item.setAttribute('role', 'treeitem');
      item.setAttribute('aria-level', row.depth + 1);
      item.setAttribute('aria-setsize', row.places);
      item.setAttribute('aria-posinset', row.place);
      item.setAttribute('aria-selected', selected.has(from + k));
      if (row.canOpen) item.setAttribute('aria-expanded', row.open);
      item.textContent = this.describe(row);
      return item;
    });
    this.list.replaceChildren(...items);
    if (rows[at]) this.host.setAttribute('aria-activedescendant', `${this.id}-${at}`);
    else this.host.removeAttribute('aria-activedescendant');
  }

  clear() {
    this.list.replaceChildren();
    this.host.removeAttribute('aria-activedescendant');
  }
}
