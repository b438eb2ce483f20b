// A small loader given to anywidget; it loads the widget's own script when the widget is first drawn.
//
// anywidget waits two seconds for a script; if it takes longer, on a busy page or because it has 5 MB as plotly's,
// anywidget never forwards a message to the widget. This loader is available sooner, and forwards messages itself where
// even that was too late. It also adds what plotly's widget lacks: page text above the plot, and a plot that is resized
// to the width of its cell.

const LOOK = 400; // milliseconds between two checks of the width of a plot that is being resized
const LOOKS = 50; // at most, after each change of the cell

const PACKED = 'H4sI'; // how gzip begins, in base64

// A notebook saves a copy of a script with every widget, so the widgets of this project send theirs compressed,
// with their style.
async function text(script) {
  if (!script.startsWith(PACKED)) return script;
  const bytes = Uint8Array.from(atob(script), c => c.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(plain).text();
}

// A page has one style for all widgets of this project, that of the last one; a shadow root, as marimo's, its own.
function use(style, root) {
  const id = 'stowage-style';
  const inside = root instanceof ShadowRoot ? root : document;
  const element = inside.getElementById(id) ?? (inside.head ?? inside).appendChild(document.createElement('style'));
  Object.assign(element, { id, textContent: style });
}

// The widget's own model, of which anywidget shows a part: an event names it.
function whole(model) {
  let found;
  model.on('change:_whole', each => {
    found = each;
  });
  model.set('_whole', {});
  model.off('change:_whole');
  found?.unset?.('_whole');
  return found;
}

// Forward messages from Python where anywidget has given up waiting: it refuses each of them, also one that says
// nothing.
async function listen(model) {
  const own = whole(model);
  if (!own?.comm || !own._handle_comm_msg) return; // neither JupyterLab's nor a notebook's: nobody waits
  try {
    await own._handle_comm_msg({ content: { data: {} } });
  } catch {
    const { _handle_comm_msg: forward } = Object.getPrototypeOf(Object.getPrototypeOf(own));
    own.comm.on_msg(message => forward.call(own, message));
    own.comm.send({ method: 'request_state' }); // what has changed in the meantime
  }
}

export default () => {
  let widget;
  let listening;

  const load = async model => {
    const address = URL.createObjectURL(new Blob([await text(model.get('_script'))], { type: 'text/javascript' }));
    try {
      const loaded = await import(address);
      const made = typeof loaded.default === 'function' ? await loaded.default() : loaded.default;
      await made.initialize?.({ model });
      return { made, View: loaded.FigureView, style: loaded.style };
    } finally {
      URL.revokeObjectURL(address);
    }
  };

  return {
    async render({ model, el }) {
      widget ??= load(model);
      const { made, View, style } = await widget;
      await (listening ??= listen(model));
      if (style) use(style, el.getRootNode());
      if (!View) return made.render({ model, el }); // not a plotly widget
      const heading = el.appendChild(document.createElement('div'));
      const plot = el.appendChild(document.createElement('div'));
      const write = () => {
        heading.innerHTML = model.get('_heading');
      };
      write();
      model.on('change:_heading', write);
      const end = await made.render({ model, el: plot });
      // as plotly's widget does on a resize event of the classic widgets; the kernel does not need the width
      const view = { model, el: plot, _sendLayoutDelta() {} };
      let [timer, left] = [0, 0];
      // a plot ignores a resize while it is being drawn, so this is repeated until the width is right
      const fit = () => {
        clearTimeout(timer);
        const drawn = plot.querySelector('.main-svg')?.getBoundingClientRect().width ?? 0;
        if (!plot.clientWidth || Math.abs(drawn - plot.clientWidth) < 1 || !left--) return;
        // an update that comes while plotly resizes makes it take the old width for a wanted one, and keep it for ever
        const { layout } = plot.querySelector('.js-plotly-plot') ?? plot;
        if (layout && !model.get('_widget_layout')?.width) delete layout.width;
        View.prototype.autosizeFigure.call(view);
        timer = setTimeout(fit, LOOK);
      };
      const cell = new ResizeObserver(() => {
        left = LOOKS;
        fit();
      });
      cell.observe(plot);
      return () => {
        cell.disconnect();
        clearTimeout(timer);
        model.off('change:_heading', write);
        end?.();
      };
    },
  };
};
