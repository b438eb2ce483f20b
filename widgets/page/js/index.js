// Entry point of a widget in a notebook: one store, fed by the widget's messages, and the requested panels.
import { make } from './core/dom.js';
import { asking, receive } from './data/receive.js';
import { Store } from './core/store.js';
import { mount } from './frame/workbench.js';

function render({ model, el }) {
  const store = new Store({ link: model.get('link') });
  // a message reaches all views of this widget; an answer for a single view names that view
  const view = Math.random();
  const { ask, heard, close: stopWaiting } = asking(store, request => model.send({ ...request, view }));
  store.ask = ask;
  const onMessage = (content, buffers) => {
    if ((content.view ?? view) !== view) return;
    if (content.kind === 'heard') heard(content.number);
    else receive(store, content, buffers);
  };
  model.on('msg:custom', onMessage);
  const close = mount(el, store, model.get('panels'));
  // in a saved notebook or an exported page there is no kernel, so the saved static picture is shown instead
  const still = el.appendChild(make('div'));
  const stopLooking = store.on(['offline', 'graph'], () => {
    const alone = store.offline && !store.graph && model.get('fallback');
    el.firstElementChild.style.display = alone ? 'none' : '';
    still.innerHTML = alone || '';
  });
  const showTab = () => {
    const [tab] = model.get('tab') ?? [];
    if (tab) store.set({ tab });
  };
  model.on('change:tab', showTab);
  showTab();
  ask({ do: 'ready' });
  return () => {
    model.off('msg:custom', onMessage);
    model.off('change:tab', showTab);
    stopWaiting();
    stopLooking();
    close();
    still.remove();
    store.close();
  };
}

export default { render };
