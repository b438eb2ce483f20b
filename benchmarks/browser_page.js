// What `browser.py` measures in a page: how long it takes from a hand's or the kernel's move until all is drawn.
const DRAG = 11; // pixels a frame
const bytes = text => new DataView(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer);
const frame = () => new Promise(requestAnimationFrame);
const find = selector => document.querySelector(selector);
const plotOf = panel => find(`.sw-${panel} .plot`);

// Until everything that was asked for is on the screen: the frame is made, and the turn after it begins.
function drawn() {
  return new Promise(done => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done(performance.now());
    port2.postMessage(null);
  }));
}

async function open(script, panels, messages) {
  const sent = messages.map(([content, buffers]) => [content, buffers.map(bytes)]);
  const listeners = new Set();
  const tell = (content, buffers = []) => { for (const listener of listeners) listener(content, buffers); };
  const model = {
    get: name => ({ panels, link: 'page' })[name],
    on: (_, listener) => listeners.add(listener),
    off: (_, listener) => listeners.delete(listener),
    send: ({ number }) => queueMicrotask(() => tell({ kind: 'heard', number })),
  };
  await frame();
  const begun = performance.now();
  const url = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
  const { default: { render } } = await import(url);
  render({ model, el: find('main') });
  for (const [content, buffers] of sent) tell(content, buffers);
  await drawn(); // a plot knows its size only once it is laid out
  return (await drawn()) - begun;
}

// Times between frames, in each of which `act(k)` does something; the first ones are not counted.
async function frames(count, act) {
  const before = picture();
  for (let k = 0; k < 10; k++) { act(k); await frame(); }
  if (picture() === before) throw new Error('nothing moves');
  const gaps = [];
  let last = await frame();
  for (let k = 10; k < count + 10; k++) {
    act(k);
    const now = await frame();
    gaps.push(now - last);
    last = now;
  }
  return gaps;
}

// Times from an act, at any moment between two frames, until it is drawn.
async function answers(count, act) {
  const before = picture();
  for (let k = 0; k < 5; k++) { act(k); await drawn(); }
  if (picture() === before) throw new Error('nothing answers');
  const times = [];
  for (let k = 5; k < count + 5; k++) {
    await drawn();
    await new Promise(done => setTimeout(done, (k * 7) % 17));
    const begun = performance.now();
    act(k);
    times.push((await drawn()) - begun);
  }
  return times;
}

const picture = () => [...document.querySelectorAll('canvas')].map(canvas => canvas.toDataURL()).join();

// Zoom in, go to and fro, zoom out, and again.
function moves(host, { zoom, pan }) {
  host.focus();
  const box = host.getBoundingClientRect();
  const wheel = (k, more) => host.dispatchEvent(new WheelEvent('wheel', {
    clientX: box.left + box.width * (0.3 + (k % 100) / 300), clientY: box.top + box.height / 3, bubbles: true,
    cancelable: true, ...more,
  }));
  return k => {
    const turn = k % 100;
    if (turn >= 30 && turn < 70) wheel(k, pan(turn < 50 ? DRAG : -DRAG));
    else wheel(k, zoom(turn < 30 ? -33 : 33));
  };
}

const ON_TIME = { zoom: deltaY => ({ deltaY }), pan: deltaX => ({ deltaX }) };
const IN_SCHEDULE = { zoom: deltaY => ({ deltaY }), pan: deltaY => ({ deltaY, shiftKey: true }) };

const MEASURED = {
  address: count => shown({ memoryView: 'address' }, () => frames(count, moves(plotOf('memory'), ON_TIME))),
  kind: count => shown({ memoryView: 'kind' }, () => frames(count, moves(plotOf('memory'), ON_TIME))),
  schedule: count => shown({ graphMode: 'schedule' }, () => frames(count, moves(plotOf('graph'), IN_SCHEDULE))),
  pan: count => shown({ memoryView: 'address' }, () => {
    const host = plotOf('memory');
    host.focus();
    for (let k = 0; k < 4; k++) press(host, 'w');
    const deltaX = k => (k % 60 < 30 ? DRAG : -DRAG);
    return frames(count, k => host.dispatchEvent(new WheelEvent('wheel', { deltaX: deltaX(k), cancelable: true })));
  }),
  highlight: count => shown({ memoryView: 'address', graphMode: 'modules' }, () => {
    const host = plotOf('memory');
    const box = host.getBoundingClientRect();
    return answers(count, k => host.dispatchEvent(new PointerEvent('pointermove', {
      clientX: box.left + 70 + (k * 37) % (box.width - 90), clientY: box.top + 24 + (k * 13) % (box.height - 100),
      bubbles: true,
    })));
  }),
  'select an op': count => shown({ graphMode: 'modules' }, () => {
    const host = plotOf('streams');
    host.focus();
    return answers(count, () => press(host, 'ArrowRight'));
  }),
  'select a module': count => shown({ graphMode: 'modules' }, () => {
    const host = plotOf('graph');
    host.focus();
    press(host, 'Home');
    return answers(count, k => { press(host, k % 12 < 6 ? 'ArrowDown' : 'ArrowUp'); press(host, 'Enter'); });
  }),
  'drag a span': count => shown({ memoryView: 'address', graphMode: 'modules' }, async () => {
    const host = plotOf('memory');
    const box = host.getBoundingClientRect();
    host.setPointerCapture = () => {}; // there is no pointer
    const event = (kind, k) => host.dispatchEvent(new PointerEvent(kind, {
      clientX: box.left + 70 + (k * 37) % (box.width - 90), clientY: box.top + 24 + (k * 13) % (box.height - 100),
      bubbles: true, shiftKey: true,
    }));
    event('pointerdown', 0);
    const times = await frames(count, k => event('pointermove', k + 1));
    event('pointercancel', 0);
    return times;
  }),
  'extend a span': count => shown({ graphMode: 'modules' }, () => {
    const host = plotOf('streams');
    host.focus();
    press(host, 'ArrowRight');
    return answers(count, () => press(host, 'ArrowRight', { shiftKey: true }));
  }),
  search: async count => {
    const field = find('.sw-graph input[type=search]');
    field.focus();
    const words = ['attention', 'relu', 'mm', 'norm.weight', 'add'].flatMap(word =>
      [...word].map((_, k) => word.slice(0, k + 1)));
    const times = await shown({ graphMode: 'modules' }, () => answers(count, k => {
      field.value = words[k % words.length];
      field.dispatchEvent(new Event('input', { bubbles: true }));
    }));
    store().set({ query: '' });
    return times;
  },
};

const store = () => plotOf('memory').plot.store;
const press = (host, key, more = {}) =>
  host.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more }));

async function shown(state, measure) {
  store().set({ ...state, selection: null, query: '' });
  store().point(null);
  plotOf('memory').plot.axis.fit();
  await drawn();
  return measure();
}

window.openWorkbench = open;
window.measure = (what, count) => MEASURED[what](count);
