// Which actions are available: a sentence with the reason if one is not, else an empty one.
import { WORKER } from './drawn_step.js';
import { standing } from './budget_answers.js';

const SAVED = 'This page was saved from a notebook and has no kernel; open the notebook to do this';

export const noKernel = ({ offline }) => (offline === 'static' ? SAVED : '');

export const searching = ({ search }) => search?.state === 'running';
export const running = ({ run }) => run?.state === 'running' || run?.state === 'planning';
export const partitioning = ({ partition }) => partition?.state === 'running';
export const resumable = ({ search }) => search?.state === 'cancelled' || search?.state === 'paused';

const atLeast = ({ machine }) => `No plan exists at this budget; it takes at least ${machine.least}`;

export function noSearch(store) {
  if (noKernel(store) || searching(store)) return noKernel(store);
  const { verdict, answered } = standing(store);
  if (!verdict) return 'The budget is not known yet';
  if (verdict === 'fits') return 'Everything fits the budget: there is nothing to search';
  if (verdict === 'impossible') return atLeast(store);
  return answered ? '' : 'The first plan for this budget is being made';
}

export function noPartition(store) {
  if (noKernel(store)) return noKernel(store);
  return store.graph ? '' : 'The step is still being captured';
}

const ALONE = 'One worker cannot be run alone: go back to the whole step, or run all with planner.run_workers';
const STEPLESS = 'A graph alone cannot be run: open the Workbench with the step it was captured from';

// Why nothing can be run here, at any budget.
export const noStep = ({ graph, drawn }) => (graph && !graph.runnable ? (drawn === WORKER ? ALONE : STEPLESS) : '');

export function noRun(store) {
  if (noKernel(store) || running(store)) return noKernel(store);
  if (noStep(store)) return noStep(store);
  const { verdict, state, plan } = standing(store);
  if (!verdict) return 'The budget is not known yet';
  if (verdict === 'impossible') return atLeast(store);
  if (state === 'none') return 'No valid plan is known at this budget; search, or raise it';
  return plan && plan.valid ? '' : 'The plan for this budget is being made';
}

export function noCompare(store) {
  if (noKernel(store) || store.compare?.plan) return noKernel(store);
  if (!standing(store).plan) return 'There is no plan at this budget to compare with another';
  return partner(store) === null ? 'No other plan is known yet; they appear while the kernel is idle' : '';
}

// The budget of the plan that Compare uses: the next larger one on the front, or the next smaller.
export function partner(store) {
  const { bytes } = standing(store);
  const front = store.front.points.filter(point => point[6]).map(([budget]) => budget);
  return front.find(budget => budget > bytes * 1.01) ?? front.reverse().find(budget => budget < bytes * 0.99) ?? null;
}
