// Step through the search results among the boxes of modules.

export class FoundModules {
  // `view`: the boxes; `view.plot.search`: the search results.
  constructor(view) {
    this.view = view;
  }
  get search() {
    return this.view.plot.search;
  }

  // For a new query, open the modules around its first result, and close those opened for earlier queries.
  renew() {
    const { tree } = this.view;
    if (!this.search.any) {
      this.before = null;
      return;
    }
    this.before ||= new Set(tree.open);
    tree.open = new Set(this.before);
    tree.build();
    this.step(1);
  }

  // The next (1) or previous (-1) box with a result; a fold is one box for all its modules.
  step(by) {
    const { search } = this;
    const { trail } = search;
    if (by > 0 && search.at + 1 === trail.length && this.findNext()) search.at += 1;
    else if (trail.length) search.at = (search.at + by + trail.length) % trail.length;
    else return;
    this.view.goTo(this.reveal(trail[search.at]));
  }

  // Append to the trail the next result that is in a box without an earlier result.
  findNext() {
    const { search } = this;
    while (search.next < search.places.length) {
      const module = search.places[search.next++];
      const { part } = this.view.tree.rows[this.reveal(module)];
      if (search.seen.has(part.key)) continue;
      search.seen.add(part.key);
      search.trail.push(module);
      return true;
    }
    return false;
  }

  // The row of a matching module, or of the first of its own ops that matches.
  reveal(module) {
    const { search } = this;
    const { graphData, tree } = this.view;
    this.view.touched = true;
    const shown = tree.rows[tree.moduleRow[module]]?.part;
    if (!shown?.modules.includes(module) || !search.modules[module]) tree.openTo(module, !search.modules[module]);
    const op = search.modules[module] ? -1 : graphData.ownOps.of(module).find(each => search.ops[each]);
    return Math.max(0, op < 0 ? tree.moduleRow[module] : tree.rowOfOp(op));
  }
}
