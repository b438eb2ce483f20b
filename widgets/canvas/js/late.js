// What anywidget is given in the place of a widget's own script, which this loads when the widget is first drawn.
//
// anywidget waits two seconds for a script; to a widget whose script takes longer, on a busy page or because it has 5
// MB as plotly's, it never passes a message on. This one is there at once. It also does for plotly's widget what that
// leaves out: text of the page above the plot, and a plot that becomes as wide as its cell whenever the cell changes.

const LOOK = 400; // milliseconds between two looks at a plot that is to become as wide as its cell
const LOOKS = 50; // at most, after each change of the cell

export default () => {
  let widget;

  const load = async model => {
    const address = URL.createObjectURL(new Blob([model.get('_script')], { type: 'text/javascript' }));
    try {
      const loaded = await import(address);
      const made = typeof loaded.default === 'function' ? await loaded.default() : loaded.default;
      await made.initialize?.({ model });
      return { made, View: loaded.FigureView };
    } finally {
      URL.revokeObjectURL(address);
    }
  };

  return {
    async render({ model, el }) {
      widget ??= load(model);
      const { made, View } = await widget;
      if (!View) return made.render({ model, el }); // none of plotly's
      const heading = el.appendChild(document.createElement('div'));
      const plot = el.appendChild(document.createElement('div'));
      const write = () => {
        heading.innerHTML = model.get('_heading');
      };
      write();
      model.on('change:_heading', write);
      const end = await made.render({ model, el: plot });
      // what plotly's widget does when a window of the older widgets changes; the kernel need not hear of the width
      const view = { model, el: plot, _sendLayoutDelta() {} };
      let [timer, left] = [0, 0];
      // a plot that is being drawn at this moment takes no notice, so it is asked until it is as wide
      const fit = () => {
        clearTimeout(timer);
        const drawn = plot.querySelector('.main-svg')?.getBoundingClientRect().width ?? 0;
        if (!plot.clientWidth || Math.abs(drawn - plot.clientWidth) < 1 || !left--) return;
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
