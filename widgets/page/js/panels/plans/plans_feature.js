// The list of plans: its tab, what Python sends for it, and the keys that undo and redo what was shown.
import { keep, registerFeature } from '../../core/features.js';
import { plural } from '../../core/units.js';
import { noKernel } from '../../data/action_availability.js';
import { plansPanel } from './plans_panel.js';

const step = request => bench => {
  const { store } = bench;
  if (noKernel(store) || !store.plans?.[request]) return false;
  store.ask({ do: request });
  return true;
};

const status = ({ plans }) => (plans?.rows.length ? plural(plans.rows.length, 'plan') : '');

function receiveDifference(store, message) {
  const { first, second } = message;
  store.set(first ? { planDifference: message, comparedPlans: [first, second] } : { planDifference: null });
}

registerFeature({
  name: 'plans',
  label: 'Plans',
  panel: plansPanel,
  state: { plans: null, planDifference: null, comparedPlans: [] },
  receivers: {
    plans: keep('plans'),
    plan_difference: receiveDifference,
  },
  keys: { undo: step('undo'), redo: step('redo') },
  help: [[['Ctrl', 'Z'], 'show the plan before; with Shift, the one after']],
  tab: { busy: () => false, share: () => null, status, wanted: () => false },
});
