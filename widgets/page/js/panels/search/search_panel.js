// The search panel: the best plan and its bound, the gain from more memory, and two plans side by side.
import { column, ownTitle } from '../../controls/column.js';
import { planDiffTable } from './plan_diff.js';
import { make, say } from '../../core/dom.js';
import { methodChoice } from './method_choice.js';
import { FrontPlot } from './front_plot.js';
import { noKernel } from '../../data/action_availability.js';
import { SearchCurve } from './search_curve.js';
import { searchStatus } from './search_status.js';
import { countText, percentText } from '../../core/units.js';
import { standing } from '../../data/budget_answers.js';

const NO_FRONT = ['No plan is known yet.', 'They appear here while the kernel is idle.'];

// `button`: makes the one that starts and stops it.
export function searchPanel(section, bench, button) {
  const { store } = bench;
  const title = ownTitle(bench, 'Search', button, searchStatus, ['search', 'budget', 'budget_bytes']);
  const [curveHost, frontHost] = [make('div'), make('div')];
  const [noCurve, noFront] = [make('div', { class: 'sw-empty' }), make('div', { class: 'sw-empty' })];
  const best = column('Best plan so far', curveHost, noCurve);
  const method = methodChoice(store);
  best.element.classList.add('sw-choosing');
  best.element.querySelector('h3').append(make('span', { class: 'grow' }), method.element);
  const front = column('Memory against step time', frontHost, noFront);
  const two = column('Plan A and B');
  const table = planDiffTable(store, two.note);
  two.element.append(table.element);
  if (title) section.append(title.element);
  section.append(make('div', { class: 'sw-cols sw-search-cols' }, best.element, front.element, two.element));
  const curve = new SearchCurve(curveHost, bench);
  const asking = (request, bytes) => {
    if (!noKernel(store)) store.ask({ do: request, bytes });
  };
  const plans = new FrontPlot(frontHost, bench, {
    take: bytes => asking('take', bytes),
    compare: bytes => asking('compare', bytes),
  });
  const showSearch = () => {
    say(best.note, rate(store));
    best.note.title = store.search?.sentence ?? '';
    swap(curveHost, noCurve, emptySearch(store));
  };
  const showFront = () => {
    const { points, doing, share } = store.front;
    const working = share === null || share === undefined ? '' : `${doing || 'sampling'}, ${percentText(share, 0)}`;
    say(front.note, working || (points.length ? 'each point is a plan' : ''));
    swap(frontHost, noFront, points.length ? null : NO_FRONT);
  };
  const stops = [store.on(['search', 'budget', 'budget_bytes', 'machine'], showSearch), store.on(['front'], showFront)];
  showSearch();
  showFront();
  return () => {
    for (const stop of stops) stop();
    for (const part of [title, method, table, curve, plans]) part?.close();
  };
}

// Show a plot, or a title and a sentence if there is nothing to draw.
function swap(plot, empty, words) {
  plot.hidden = !!words;
  empty.hidden = !words;
  if (words) empty.replaceChildren(make('b', { text: words[0] }), make('p', { text: words[1] }));
}

function rate({ search }) {
  if (search?.state === 'idle' && search.baselines.length) return 'dotted: simple policies';
  if (!search || !search.history.length) return search?.state === 'running' ? search.doing : '';
  const evaluations = `${countText(search.evaluations)} evaluation${search.evaluations === 1 ? '' : 's'}`;
  return `${evaluations}, ${search.state === 'running' ? `${countText(search.rate ?? 0)} /s` : `seed ${search.seed}`}`;
}

// The text shown in place of a curve; null if there is something to draw.
function emptySearch(store) {
  const { search, machine } = store;
  const { verdict } = standing(store);
  if (verdict === 'fits') return ['Nothing to search.', 'The whole step fits the budget, so no tensor is moved.'];
  if (verdict === 'impossible') {
    return ['No plan can exist here.', `Raise the budget to ${machine.least} or more.`];
  }
  if (search?.state === 'failed') return ['The search failed.', search.sentence];
  if (search && (search.history.length || search.baselines.some(([, cost]) => cost !== null))) return null;
  if (search?.state === 'running') return ['Searching.', search.doing];
  if (search?.state === 'done' || search?.state === 'paused') {
    return ['No valid plan was found.', search.sentence || 'Raise the budget, or search on.'];
  }
  if (search?.state === 'cancelled') {
    return ['Cancelled before the first plan.', search.sentence || 'Resume goes on where it stopped.'];
  }
  return ['Not searched yet.', 'Search looks for the fastest plan within the budget.'];
}
