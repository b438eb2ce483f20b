// What anywidget is given in the place of a widget's own script, which this loads when the widget is first drawn.
//
// anywidget waits two seconds for a script; to a widget whose script takes longer, on a busy page or because it has 5
// MB as plotly's, it never passes a message on. This one is there at once.

export default () => {
  let widget;

  const load = async model => {
    const address = URL.createObjectURL(new Blob([model.get('_script')], { type: 'text/javascript' }));
    try {
      const { default: made } = await import(address);
      const found = typeof made === 'function' ? await made() : made;
      await found.initialize?.({ model });
      return found;
    } finally {
      URL.revokeObjectURL(address);
    }
  };

  return {
    async render({ model, el }) {
      widget ??= load(model);
      return (await widget).render({ model, el });
    },
  };
};
