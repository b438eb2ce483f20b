// The search: its tab, what Python sends for it, and the key that cancels it.
import { mainButton } from '../../controls/main_button.js';
import { keep, registerFeature } from '../../core/features.js';
import { noSearch, resumable, searching } from '../../data/action_availability.js';
import { isIdeal, standing } from '../../data/budget_answers.js';
import { searchPanel } from './search_panel.js';
import { searchStatus } from './search_status.js';

function cancel({ store }) {
  if (!searching(store)) return false;
  store.ask({ do: 'cancel' });
  return true;
}

// Whether there is a faster plan to look for.
function wanted(store) {
  const { plan } = standing(store);
  return !(plan && isIdeal(plan.step_seconds, plan.ideal_seconds)) && !noSearch(store);
}

function share({ search }) {
  if (search?.state !== 'running') return null;
  const { share: done, seconds, limit_seconds: limit } = search;
  return (limit ? seconds / limit : done) ?? 0;
}

const button = mainButton('search', {
  label: store => (searching(store) ? 'Cancel' : resumable(store) ? 'Resume' : 'Search'),
  stopping: 'Cancelling',
  busy: searching,
  reason: noSearch,
  press: store => ({ do: searching(store) ? 'cancel' : resumable(store) ? 'resume' : 'search' }),
});

registerFeature({
  name: 'search',
  label: 'Search',
  panel: (section, bench) => searchPanel(section, bench, button),
  state: { search: null, front: { points: [] }, compare: null },
  receivers: { search: keep('search'), front: keep('front'), compare: keep('compare') },
  keys: { Escape: cancel },
  tab: { busy: searching, share, status: searchStatus, button, wanted },
});
