// The header of the workbench: the step and the machine, the actions, the budget and the answers about it.
import { registerFeature, tabs } from '../core/features.js';
import { workerChoice } from '../controls/worker_choice.js';
import { answersRow } from './answers_row.js';
import { budgetSlider } from './budget_slider.js';
import { allow, allowed, make, say } from '../core/dom.js';
import { exportMenu } from '../export/export_menu.js';
import { fullScreenButton, toggleFullScreen } from './full_screen.js';
import { showHelp } from '../controls/shortcut_list.js';
import { noCompare, noKernel, partner } from '../data/action_availability.js';
import { bytesText, countText } from '../core/units.js';

export function headerPanel(section, bench) {
  const { store } = bench;
  const starting = tabs().flatMap(({ tab }) => tab.button?.(store) ?? []);
  const beside = tabs().flatMap(({ tab }) => tab.beside?.(store) ?? []);
  const buttons = [...starting, ...beside, compareButton(store), exportMenu(bench)];
  const [words, machine] = [facts(store), picker(store)];
  const help = make('button', {
    type: 'button',
    class: 'btn sw-keys',
    'aria-label': 'Keys and words',
    title: 'Keys and words (?)',
    text: '?',
    click: () => showHelp(bench),
  });
  const screen = fullScreenButton(bench);
  const slider = budgetSlider(store);
  const verdict = answersRow(bench);
  const pressed = [...buttons, screen].map(button => button.element);
  const acts = make('div', { class: 'sw-acts' }, machine.element, ...pressed, help);
  section.append(
    make('div', { class: 'sw-head' }, words.element, acts),
    make('div', { class: 'sw-budget' }, slider.element, verdict.element),
  );
  return () => [words, machine, ...buttons, screen, slider, verdict].forEach(part => part.close());
}

// During the capture, every call is counted.
const COUNTED = 'Calls that compute something that is used; views and other calls of PyTorch are not counted';

function facts(store) {
  const name = make('h2', { class: 'sw-model' });
  const list = make('span', { class: 'sw-facts' });
  const worker = workerChoice(store);
  const element = make('div', { class: 'sw-what' }, name, worker.element, list);
  const show = () => {
    const { graph, machine } = store;
    say(name, graph?.name ?? '');
    name.title = graph?.name ?? '';
    if (!graph) {
      list.replaceChildren();
      return;
    }
    const peak = machine?.step_peak_bytes ?? graph.step_peak_bytes;
    const entries = [
      [countText(graph.ops), graph.ops === 1 ? ' op' : ' ops'],
      [short(graph.parameters), ' parameters'],
      [null, 'step peak ', bytesText(peak)],
    ].map(([before, between, after], k) =>
      make(
        'span',
        { class: 'sw-fact', title: k ? null : COUNTED },
        before === null ? null : make('b', { text: before }),
        between,
        after ? make('b', { text: after }) : null,
      ),
    );
    const phrase = graph.facts.join(', ');
    const classes = 'sw-fact sw-phrases medium-hide';
    const phrases = phrase ? [make('span', { class: classes, text: phrase, title: phrase })] : [];
    const dot = also => make('span', { class: `sw-dot ${also}`, 'aria-hidden': 'true', text: '·' });
    const before = k => (k ? [dot('')] : phrases.length ? [dot('medium-hide')] : []);
    list.replaceChildren(...phrases, ...entries.flatMap((entry, k) => [...before(k), entry]));
  };
  const stop = store.on(['graph', 'machine'], show);
  show();
  return { element, close: () => [stop, worker.close].forEach(end => end()) };
}

// 937 M for 937 million; three significant digits suffice for a header.
function short(count) {
  const size = [
    [1e12, ' T'],
    [1e9, ' B'],
    [1e6, ' M'],
    [1e4, ' k', 1e3],
  ].find(([least]) => count >= least);
  if (!size) return countText(count);
  const value = count / (size[2] ?? size[0]);
  return (value >= 100 ? value.toFixed(0) : value.toPrecision(3)) + size[1];
}

function picker(store) {
  const element = make('select', { class: 'big sw-machine', 'aria-label': 'Machine' });
  let listed = null;
  element.addEventListener('change', () => store.ask({ do: 'machine', name: element.value }));
  const show = () => {
    const { machine } = store;
    element.hidden = !machine;
    if (!machine) return;
    const key = JSON.stringify(machine.machines);
    if (key !== listed) {
      listed = key;
      element.replaceChildren(...machine.machines.map(([name, label]) => make('option', { value: name, text: label })));
    }
    element.value = machine.name;
    element.disabled = !!noKernel(store);
    const caution = machine.approximate ? `. Approximate, as ${machine.approximate}.` : '';
    element.title = noKernel(store) || `The machine that plans are made for${caution}`;
  };
  const close = store.on(['machine', 'offline'], show);
  show();
  return { element, close };
}

function compareButton(store) {
  const element = make('button', { type: 'button', class: 'btn sw-do-compare', text: 'Compare' });
  element.addEventListener('click', () => {
    if (!allowed(element)) return;
    store.set({ tab: 'search' });
    store.ask({ do: 'compare', bytes: store.compare?.plan ? null : partner(store) });
  });
  const show = () => {
    const on = !!store.compare?.plan;
    element.setAttribute('aria-pressed', on);
    allow(element, noCompare(store), on ? 'Stop comparing' : 'Compare with the next larger plan on the front');
  };
  const close = store.on(['compare', 'plan', 'front', 'budget', 'budget_bytes', 'offline'], show);
  show();
  return { element, close };
}

registerFeature({
  name: 'header',
  label: 'Step, budget and verdict',
  panel: headerPanel,
  keys: { e: toggleFullScreen },
  help: [[['E'], 'full screen']],
});
