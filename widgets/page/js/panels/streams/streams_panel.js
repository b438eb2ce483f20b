// The streams panel: title with a one-line summary, legend, and lanes; and the player of the step.
import { registerFeature } from '../../core/features.js';
import { choice } from '../../controls/choice.js';
import { draw } from '../../controls/icons.js';
import { allow, make, say } from '../../core/dom.js';
import { PHASES } from '../../core/kinds.js';
import { COLLECTIVE, IN, OUT } from './lanes.js';
import { spanCard } from '../span/span_card.js';
import { Player } from './player.js';
import { StreamsView } from './streams_view.js';
import { plural, secondsText } from '../../core/units.js';
import { withinOther } from '../../data/budget_answers.js';

const UNITS = [
  ['time', 'Time'],
  ['op', 'Ops'],
];

const players = new WeakMap(); // by bench

export function streamsPanel(section, bench) {
  const { root, store, axis } = bench;
  const note = make('span', { class: 'note' });
  const legend = make('span', { class: 'legend' });
  const player = new Player(bench);
  const button = playButton(store, player);
  const title = make('div', { class: 'sw-title' }, make('h3', { text: 'Streams' }), button.element, note, legend);
  const endings = [button.close, () => player.close()];
  players.set(bench, player);
  if (root.dataset.panels === 'one') {
    // with a memory map, that panel has this choice
    const [units, end] = choice(store, 'unit', UNITS, 'Unit of the time axis');
    title.append(units);
    endings.push(end);
  }
  section.append(title);
  const view = new StreamsView(section.appendChild(make('div')), bench);
  if (!root.querySelector('.sw-holders')) {
    const card = spanCard(bench);
    section.append(card.element);
    endings.push(card.close);
  }
  const show = () => {
    say(note, noteOf(store, view.lanes));
    legend.replaceChildren(...entries(store));
  };
  // after the axis has the plan, because the lanes depend on the axis
  endings.push(
    axis.on(remapped => {
      if (remapped) show();
    }),
    store.on(['graph', 'plan', 'budget', 'budget_bytes'], show),
  );
  show();
  return () => {
    view.close();
    for (const end of endings) end();
  };
}

function playButton(store, player) {
  const element = make('button', { type: 'button', class: 'btn small sw-play', click: () => player.toggle() });
  const show = () => {
    draw(element, store.playing ? 'pause' : 'play');
    element.setAttribute('aria-label', store.playing ? 'Pause' : 'Play the step');
    const why = store.plan?.slots ? '' : 'There is no plan to play';
    allow(element, why, `${store.playing ? 'Pause' : 'Play the ops in view, one after another'} (Space)`);
  };
  const close = store.on(['plan', 'playing'], show);
  show();
  return { element, close };
}

function play(bench) {
  const player = players.get(bench);
  player?.toggle();
  return !!player;
}

function noteOf(store, lanes) {
  const { plan } = store;
  if (!plan || !lanes) return '';
  if (plan.placeholder) return 'no plan';
  const percent = which => `${(100 * lanes.busy(which)).toFixed(0)} %`;
  const stalls = plan.stall_start.length;
  const waits = stalls ? `${plural(stalls, 'stall')}, ${secondsText(plan.stall_seconds)}` : 'no stalls';
  const link = plan.moved ? `busy ${percent(OUT)} out, ${percent(IN)} in` : 'idle';
  const count = plan.collective_op.length;
  const met = count && `${plural(count, 'collective')}, ${percent(COLLECTIVE)} of the step`;
  return [withinOther(store), met, waits, `link ${link}`].filter(Boolean).join(' · ');
}

function entries({ graph, plan }) {
  const present = new Set(graph?.op_phase);
  const swatch = colour => make('i', { class: 'k', style: `background:var(--sw-${colour})` });
  const entry = (colour, text) => make('span', {}, swatch(colour), text);
  const phases = PHASES.filter((_, phase) => present.has(phase)).map(phase => entry('phase-' + phase, phase));
  const again = make('span', {}, make('i', { class: 'k striped' }), 'run again');
  return [
    ...phases,
    ...(plan?.repeat_slot.length ? [again] : []),
    ...(plan?.stall_start.length ? [entry('limit', 'stall')] : []),
  ];
}

registerFeature({
  name: 'streams',
  label: 'Streams',
  panel: streamsPanel,
  state: { playing: false },
  keys: { ' ': play },
  help: [[['Space'], 'play the ops in view, pause; in the graph: fold or unfold modules that are alike']],
});
