// The budget: a slider that snaps to round amounts and to the marks of its track, and the amount, which a click turns
// into an input field for an exact value.
import { moveBudget } from '../data/budget_request.js';
import { budgetScale } from './budget_scale.js';
import { parseBudget, sliderStep } from './budget_parser.js';
import { BudgetTrack } from './budget_track.js';
import { allow, allowed, make, say } from '../core/dom.js';
import { noKernel } from '../data/action_availability.js';
import { bytesText } from '../core/units.js';
import { answers, verdictSentence } from '../data/budget_answers.js';

const LEAP = 8; // steps of Page Up and Page Down
const EXAMPLES = 'Write it like 8GiB, 8GB or 50%';

export function budgetSlider(store) {
  const track = make('div', { class: 'sw-track-plot' });
  const range = make('input', { type: 'range', min: 0, max: 1, step: 'any', 'aria-label': 'Budget' });
  const amount = make('button', { type: 'button', class: 'sw-amount' });
  const field = make('input', {
    type: 'text',
    class: 'sw-amount-field',
    'aria-label': 'Budget',
    hidden: true,
    spellcheck: 'false',
  });
  const hint = make('span', { class: 'sw-amount-hint', role: 'status' });
  const element = make(
    'div',
    { class: 'sw-budget-box' },
    make('div', { class: 'sw-budget-row' }, make('b', { text: 'Budget' }), hint, amount, field),
    make('div', { class: 'sw-track' }, track, range),
  );
  const plot = new BudgetTrack(track, { store });

  const move = bytes => {
    if (bytes !== store.budget_bytes) moveBudget(store, bytes);
  };
  range.addEventListener('input', () => {
    const scale = budgetScale(store.machine);
    move(resting(scale.bytes(Number(range.value)), store.machine));
    range.value = scale.place(store.budget_bytes);
  });
  range.addEventListener('keydown', event => {
    const to = keyed(event.key, store);
    if (to === null) return;
    event.preventDefault();
    event.stopPropagation();
    move(to);
  });
  exactly(store, { amount, field, hint, move });

  const show = () => {
    const { machine, budget_bytes: bytes } = store;
    const reason = noKernel(store) || (machine ? '' : 'The machine is not known yet');
    range.hidden = !machine;
    range.disabled = !!reason;
    range.title = reason;
    allow(amount, reason, 'Type an exact budget');
    if (!machine || bytes === null) {
      say(amount, '–');
      return;
    }
    range.value = budgetScale(machine).place(bytes);
    const text = bytesText(bytes);
    say(amount, text);
    const now = answers(store);
    range.setAttribute('aria-valuetext', now ? verdictSentence(now) : text);
  };
  const stop = store.on(['machine', 'budget', 'budget_bytes', 'plan', 'samples', 'offline', 'graph'], show);
  show();
  return {
    element,
    close: () => {
      stop();
      plot.close();
    },
  };
}

// The nearest round amount or mark.
function resting(bytes, machine) {
  const { slider_bytes: end, least_bytes: least, device_bytes: device, step_peak_bytes: peak } = machine;
  const step = stepAt(bytes, machine);
  const round = Math.max(step, Math.round(bytes / step) * step);
  const marks = [round, least, peak, ...(device ? [device] : []), end].filter(mark => mark <= end);
  return marks.reduce((best, mark) => (Math.abs(mark - bytes) < Math.abs(best - bytes) ? mark : best));
}

// The steps between round amounts: small where budgets make a difference, large beyond.
const stepAt = (bytes, { near_bytes: near, slider_bytes: end }) => sliderStep(bytes < near ? near : end);

// The budget after a key press; null for keys that the slider does not handle.
function keyed(key, { machine, budget_bytes: bytes }) {
  const step = stepAt(bytes, machine);
  const below = stepAt(bytes - 1, machine);
  const { near_bytes: near } = machine;
  const up = by => (Math.floor(bytes / step) + by) * step;
  const down = by => {
    const to = (Math.ceil(bytes / below) - by) * below;
    return bytes > near ? Math.max(near, to) : to;
  };
  const moves = {
    ArrowRight: () => up(1),
    ArrowUp: () => up(1),
    PageUp: () => up(LEAP),
    ArrowLeft: () => down(1),
    ArrowDown: () => down(1),
    PageDown: () => down(LEAP),
    Home: () => machine.least_bytes,
    End: () => machine.slider_bytes,
  };
  return moves[key] ? Math.max(sliderStep(near), Math.min(machine.slider_bytes, moves[key]())) : null;
}

// Switch the amount to an input field and back.
function exactly(store, { amount, field, hint, move }) {
  const forgive = () => {
    say(hint, '');
    field.removeAttribute('aria-invalid');
  };
  const open = shown => {
    field.hidden = !shown;
    amount.hidden = shown;
    forgive();
  };
  amount.addEventListener('click', () => {
    if (!allowed(amount)) return;
    open(true);
    field.value = amount.textContent;
    field.focus();
    field.select();
  });
  field.addEventListener('input', forgive);
  field.addEventListener('keydown', event => {
    event.stopPropagation();
    if (event.key === 'Escape') {
      open(false);
      amount.focus();
    }
    if (event.key !== 'Enter') return;
    event.preventDefault(); // otherwise Enter would press the button that gets the focus
    const bytes = parseBudget(field.value, store.machine.step_peak_bytes, store.machine.outside_bytes);
    if (bytes === null) {
      say(hint, EXAMPLES);
      field.setAttribute('aria-invalid', 'true');
      return;
    }
    move(bytes);
    open(false);
    amount.focus();
  });
  field.addEventListener('blur', () => open(false));
}
