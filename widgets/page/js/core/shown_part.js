// What of a step a view shows: the selection, the zoom, the tab. A page that is saved opens with it.
const KEPT = ['selection', 'unit', 'memoryView', 'tab', 'graphMode', 'metric'];

export function shownPart({ root, store, axis }) {
  const selection = store.selection && plain(store.selection);
  const addresses = memoryOf(root)?.addresses;
  return {
    ...Object.fromEntries(KEPT.map(key => [key, store[key]])),
    selection,
    time: [axis.from / axis.end, axis.to / axis.end],
    addresses: addresses && !addresses.whole ? [addresses.low, addresses.high] : null,
  };
}

export function showPart({ root, store, axis }, { time, addresses, ...kept }) {
  store.set(kept);
  if (axis.plan) axis.view(time[0] * axis.end, time[1] * axis.end);
  const memory = memoryOf(root);
  if (!addresses || !memory) return;
  memory.addresses.show(...addresses);
  memory.draw();
}

const memoryOf = root => root.querySelector('.sw-memory .plot')?.plot;

// Sets and typed arrays as lists, which JSON has.
const plain = selection =>
  Object.fromEntries(
    Object.entries(selection).map(([key, value]) => [
      key,
      value instanceof Set || ArrayBuffer.isView(value) ? [...value] : value,
    ]),
  );
