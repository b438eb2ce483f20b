// What a search has found among the boxes of modules, one box after another.

export class FoundModules {
  // `view`: the boxes, `view.plot.search` what was found.
  constructor(view) {
    this.view = view;
  }
  get search() {
    return this.view.plot.search;
  }

  // Another query: open what its first find lies in, and close again what earlier letters of it have opened.
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

  // The next box (1) or the one before (-1) in which something was found; a fold is one box for all its members.
  step(by) {
    const { search } = this;
    const { trail } = search;
    if (by > 0 && search.at + 1 === trail.length && this.findNext()) search.at += 1;
    else if (trail.length) search.at = (search.at + by + trail.length) % trail.length;
    else return;
    this.view.goTo(this.reveal(trail[search.at]));
  }

  // Add to the trail the next module that is found in a box where none was found before.
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

  // The row of a module that is found, or of the first of its own ops that is.
  reveal(module) {
    const { search } = this;
    const { scene, tree } = this.view;
    this.view.touched = true;
    const shown = tree.rows[tree.moduleRow[module]]?.part;
    if (!shown?.modules.includes(module) || !search.modules[module]) tree.openTo(module, !search.modules[module]);
    const op = search.modules[module] ? -1 : scene.ownOps.of(module).find(each => search.ops[each]);
    return Math.max(0, op < 0 ? tree.moduleRow[module] : tree.rowOfOp(op));
  }
}
