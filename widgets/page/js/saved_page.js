// Entry point of a saved page: unpacks its messages into a store without a kernel, which the panels draw.
import { showPart } from './core/shown_part.js';
import { receive } from './data/receive.js';
import { Store } from './core/store.js';
import { mount } from './frame/workbench.js';

const PAGE_DARK = 'sw-page-dark';

async function openPage() {
  const text = document.getElementById('messages').textContent;
  const packed = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  const data = await new Response(stream).arrayBuffer();
  const heads = new DataView(data).getUint32(0, true);
  const { panels, messages, shown } = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, heads)));
  const store = new Store();
  let bench;
  mount(document.getElementById('stowage'), store, panels, made => (bench = made));
  let at = 4 + heads;
  for (const [content, sizes] of messages) {
    const buffers = sizes.map(size => new DataView(data, (at += size) - size, size));
    receive(store, content, buffers);
  }
  store.set({ offline: 'static' });
  if (shown) showPart(bench, shown);
}

// Light or dark as in the system settings, until the button overrides it.
function followTheme(button) {
  const page = document.documentElement;
  const system = window.matchMedia('(prefers-color-scheme: dark)');
  const show = dark => {
    page.classList.toggle(PAGE_DARK, dark);
    button.textContent = dark ? 'Light' : 'Dark';
    button.title = `Show the page in ${dark ? 'light' : 'dark'} colours`;
  };
  const follow = () => show(system.matches);
  system.addEventListener('change', follow);
  button.addEventListener('click', () => {
    system.removeEventListener('change', follow);
    show(!page.classList.contains(PAGE_DARK));
  });
  follow();
}

followTheme(document.getElementById('theme'));
openPage().catch(error => {
  const sentence = 'This page could not be opened: it is damaged, or the browser is older than 2023';
  document.getElementById('stowage').textContent = `${sentence} (${error.message}).`;
});
