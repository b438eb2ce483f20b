// The status of the search, in a few words.
import { isIdeal, standing } from '../../data/budget_answers.js';

const SEARCH = {
  running: ({ seconds, limit_seconds: limit, doing }) =>
    `${doing || 'searching'}, ${seconds.toFixed(1)}${limit ? ` of ${limit.toFixed(0)}` : ''} s`,
  cancelled: ({ history }) => (history.length ? 'cancelled, best plan kept' : 'cancelled before the first plan'),
  paused: () => 'at its limit, best plan kept',
  done: ({ history }) => (history.length ? 'done, best plan validated' : 'done, no plan found'),
  failed: () => 'the search failed',
  nothing: () => 'nothing to search',
};

export function searchStatus(store) {
  const { search } = store;
  const { verdict, state } = standing(store);
  if (search && SEARCH[search.state] && search.state !== 'nothing') return SEARCH[search.state](search);
  if (verdict === 'fits') return 'nothing to search';
  if (verdict === 'impossible') return 'no plan';
  if (state === 'none') return 'no valid plan yet';
  if (state === 'planning') return store.budget?.doing || 'planning';
  return verdict ? unsearched(store) : '';
}

// The origin of a plan that was not found by a search here.
function unsearched({ plan, search }) {
  if (plan && isIdeal(plan.step_seconds, plan.ideal_seconds)) return 'ideal: no plan can be faster';
  const simple = (search?.baselines ?? []).some(([, cost]) => cost !== null && cost <= plan?.step_seconds * 1.00005);
  return simple ? 'plan by a simple policy; press Search for a better one' : 'best plan known, not searched here';
}
