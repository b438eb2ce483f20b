// The answers about a budget, before and after Python has planned for it: does it fit, what does it cost, why.
import { bytesText, changeText, countText, ofText, percentText, secondsText } from '../core/units.js';

const WORTH_A_SEARCH = 0.985; // of the cost now
const SAME = 0.9995; // of the cost now, above which another cost is displayed as equal

// The budget shown, its verdict, whether Python has answered for it, and its plan if there is one.
export function standing({ budget, budget_bytes, machine, plan }) {
  const bytes = budget_bytes ?? budget?.budget_bytes ?? null;
  const answered = !!budget && budget.budget_bytes === bytes;
  const verdict = answered ? budget.verdict : guess(bytes, machine);
  const state = answered ? budget.state : 'planning';
  return { bytes, answered, verdict, state, plan: state === 'planned' && plan && !plan.placeholder ? plan : null };
}

function guess(bytes, machine) {
  if (bytes === null || !machine) return null;
  if (bytes < machine.least_bytes) return 'impossible';
  return bytes < machine.step_peak_bytes ? 'swap' : 'fits';
}

// The step's cost at a budget, interpolated between the samples; null below the least of them.
export function estimate(points, bytes) {
  const after = points.findIndex(([budget]) => budget >= bytes);
  if (after < 0) return points.length ? points[points.length - 1][1] : null;
  const [budget, seconds] = points[after];
  if (budget === bytes) return seconds;
  if (!after) return null;
  const [budgetBefore, secondsBefore] = points[after - 1];
  return secondsBefore + ((bytes - budgetBefore) / (budget - budgetBefore)) * (seconds - secondsBefore);
}

// The least budget above this one for which a plan is known.
export function nextKnown({ samples }, bytes) {
  return samples.points.find(([budget]) => budget > bytes)?.[0] ?? null;
}

// While the budget is being moved, the plan of the previous budget is still shown, and while another machine is being
// assessed, that of the previous machine: says which plan it is.
export function withinOther({ plan, budget, budget_bytes: wanted, machine }) {
  if (budget?.machine) return `for ${machine.label}`;
  return !plan || plan.placeholder || plan.budget_bytes === wanted ? '' : `within ${bytesText(plan.budget_bytes)}`;
}

export const VERDICTS = { fits: 'fits', swap: 'needs a plan', impossible: 'impossible' };

// Whether no op waits, so that no plan can be faster.
export const isIdeal = (seconds, ideal) => seconds <= ideal * 1.00005;

// Each answer: `head`, `unit` behind it, `parts` of the sentence below, and a budget to `use` instead, if any.
export function answers(store) {
  const now = standing(store);
  if (!now.verdict || !store.machine) return null;
  const why = store.machine.why[now.verdict]; // as Python says it
  if (store.budget?.machine) {
    const waits = { head: '–', parts: [store.budget.doing] };
    return { ...now, fit: waits, cost: waits, why };
  }
  return { ...now, fit: fit(store, now), cost: cost(store, now), why };
}

function fit({ machine }, { bytes, verdict, plan }) {
  const { device_bytes: device, step_peak_bytes: peak } = machine;
  if (verdict === 'impossible') {
    return { head: 'Cannot fit', parts: ['needs at least ', [machine.least]], use: machine.least_bytes };
  }
  if (device && bytes > device && peak > device) return tooLarge(machine);
  if (verdict === 'fits') return room(peak, bytes, device);
  const head = 'Needs a plan'; // which swaps, recomputes or both
  const swapped = plan?.bytes_out ? `, ${bytesText(plan.bytes_out)} swapped` : '';
  return { head, parts: [[bytesText(peak - bytes)], ` over${swapped}`] };
}

// Both the budget and the step's peak exceed the device's memory.
function tooLarge({ name, step_peak_bytes: peak, device_bytes: device }) {
  const where = name === 'cpu' ? 'this computer' : 'this GPU';
  return { head: `Does not fit ${where}`, parts: ['needs ', [ofText(peak, device)]] };
}

// Nothing is swapped: how much of the budget is left, or of the device where the budget leaves nothing.
function room(peak, budget, device) {
  const limit = Math.min(budget, device);
  if (limit > peak) return { head: 'Fits', parts: [[bytesText(limit - peak)], ' to spare, nothing moves'] };
  if (device > peak) return { head: 'Fits', parts: [[bytesText(device - peak)], ' more on the device, nothing moves'] };
  return { head: 'Fits', parts: ['to the last byte, nothing moves'] };
}

function cost(store, { bytes, verdict, state, plan }) {
  const { machine, budget, samples } = store;
  if (verdict === 'impossible') return { head: '–', parts: ['no plan at this budget'] };
  if (state === 'none') {
    return { head: '–', parts: [budget.sentence || 'no valid plan found yet'], use: nextKnown(store, bytes) };
  }
  const guessed = verdict === 'fits' ? machine.ideal_seconds : estimate(samples.points, bytes);
  const seconds = plan ? plan.step_seconds : guessed;
  if (seconds === null || seconds === undefined) return { head: '–', parts: [budget?.doing || 'a plan is being made'] };
  const ideal = plan?.ideal_seconds ?? machine.ideal_seconds;
  const met = isIdeal(seconds, ideal);
  const parts = met ? ['ideal, no op waits'] : [[changeText(seconds / ideal - 1)], ' over ideal'];
  if (plan?.again) parts.push(`, ${plan.again}`);
  parts.push(...rest(store, { seconds, guessed, plan, verdict }));
  return { head: (plan ? '' : '≈ ') + secondsText(seconds), unit: 'per step', parts };
}

// A note on the cost: too little host memory, a better plan or a worthwhile search, or the training speed.
function rest({ graph, machine, search }, { seconds, guessed, plan, verdict }) {
  if (plan && machine.host_bytes && plan.host_bytes > machine.host_bytes) return [', host memory short'];
  if (!plan) return [verdict === 'swap' ? ', once searched' : ''];
  const found = search?.state === 'running' && search.history.length ? search.history.at(-1)[2] : seconds;
  if (found < seconds * SAME) return [`, ${secondsText(found, 1)} found, drawn soon`];
  const idle = !search || search.state === 'idle';
  if (verdict === 'swap' && idle && guessed && guessed < seconds * WORTH_A_SEARCH) {
    return [`, a search may reach ${secondsText(guessed, 1)} or less`];
  }
  return graph?.samples ? [`, ${rateText(graph.samples / seconds)} samples/s`] : [];
}

const rateText = rate => (rate >= 100 ? countText(rate) : rate >= 1 ? rate.toFixed(1) : rate.toPrecision(2));

// The three answers in one sentence, for screen readers.
export function verdictSentence({ bytes, verdict, cost: { head } }) {
  return `${bytesText(bytes)}, ${VERDICTS[verdict]}, ${head} per step`;
}
