// The features of the Workbench. The folder of each panel registers what it adds; the frame, the header, the store and
// the receiver of messages know of it from here alone.
const known = [];

// name, label   of the panel, as Python and a reader call it
// panel         (section, bench): fills the section; returns a function that closes it
// state         keys of the store, with what they are before any message
// receivers     by kind of message, (store, message, buffers); see `keep`
// keys          by key, (bench): whether it did something
// help          lines of the list of keys: keys and what they do
// tab           for a panel that shares the place at the bottom, with what Python says about it under its name:
//               `busy(store)`; `share(store)` of its work that is done, or null; `status(store)` in a few words;
//               `button(store, alone)`, which starts and stops it, unless the panel has it itself; `wanted(store)`,
//               whether the budget calls for that; and perhaps `beside(store)`, an element beside the button
export function registerFeature(feature) {
  known.push(feature);
}

// In the order of reading, which is that of registration.
export const features = () => known;

export const tabs = () => known.filter(({ tab }) => tab);

// A receiver that keeps the latest message under a key of the store.
export const keep = key => (store, message) => store.set({ [key]: message });
