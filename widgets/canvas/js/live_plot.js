/* A plot that follows its figure in the kernel: plotly's own widget, begun where it is first drawn.

   anywidget gives a script two seconds; to one that takes longer it passes no message on, ever. Plotly's has 5 MB. So
   this short script takes its place, and loads plotly's when it draws. The kernel keeps the figure's whole state up to
   date, for what it sent before that was heard by nobody. */

export default () => {
  let plotly;

  const load = async model => {
    const address = URL.createObjectURL(new Blob([model.get('_plotly')], { type: 'text/javascript' }));
    try {
      const widget = (await import(address)).default();
      widget.initialize({ model });
      return widget;
    } finally {
      URL.revokeObjectURL(address);
    }
  };

  return {
    async render({ model, el }) {
      plotly ??= load(model);
      return (await plotly).render({ model, el });
    },
  };
};
