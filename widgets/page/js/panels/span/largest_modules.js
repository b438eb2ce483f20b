// The modules that hold most of something, as few as say where it is: the largest is opened until there are enough.
const ENOUGH = 6;

// `own`: bytes of each module without those below it. Returns `{name, bytes}`, the largest first, which are together
// all bytes. An opened module stands for what is its own.
export function largestModules(graphData, own) {
  const all = Float64Array.from(own);
  for (let module = graphData.modules - 1; module > 0; module--) all[graphData.parentOf(module)] += all[module];
  const entries = all[0] ? [{ module: 0, bytes: all[0], opened: false }] : [];
  const opens = ({ module, opened }) => !opened && graphData.children(module).some(child => all[child]);
  while (entries.length < ENOUGH) {
    const closed = entries.filter(opens);
    if (!closed.length) break;
    const largest = closed.reduce((most, entry) => (largestFirst(most, entry) <= 0 ? most : entry));
    const children = [...graphData.children(largest.module)].filter(child => all[child]);
    entries.splice(entries.indexOf(largest), 1, ...children.map(module => ({ module, bytes: all[module] })));
    if (own[largest.module]) entries.push({ module: largest.module, bytes: own[largest.module], opened: true });
  }
  entries.sort(largestFirst);
  return entries.map(({ module, bytes, opened }) => ({ name: nameOf(graphData, module, opened), bytes }));
}

const largestFirst = (a, b) => b.bytes - a.bytes || a.module - b.module;

function nameOf(graphData, module, opened) {
  if (!opened) return graphData.path(module);
  return module ? `${graphData.path(module)} itself` : 'in no module';
}
