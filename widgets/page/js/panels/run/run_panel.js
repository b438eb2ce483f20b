// The run panel: measured memory over the prediction, live, and whether the results match eager PyTorch.
import { column, ownTitle } from '../../controls/column.js';
import { allow, allowed, make, say } from '../../core/dom.js';
import { noRun, noStep } from '../../data/action_availability.js';
import { RunChart } from './run_chart.js';
import { comparison, stepTimes } from './run_facts.js';
import { runStatus } from './run_status.js';
import { plural } from '../../core/units.js';
import { standing } from '../../data/budget_answers.js';

const FIRST =
  'Run executes this plan for 3 steps on this computer, draws measured memory over the prediction,' +
  ' and compares every parameter with eager PyTorch.';

// `button`: makes the one that starts and stops it.
export function runPanel(section, bench, button) {
  const { store } = bench;
  const title = ownTitle(bench, 'Run', button, runStatus, ['run']);
  const host = make('div');
  const empty = make('div', { class: 'sw-empty' });
  const stopped = make('p', { class: 'sw-stopped', role: 'status' });
  const memory = column('Device memory', stopped, host, empty);
  const [times, equal] = [stepTimes(store), comparison(store)];
  if (title) section.append(title.element);
  section.append(make('div', { class: 'sw-cols sw-run-cols' }, memory.element, times.element, equal.element));
  const chart = new RunChart(host, bench);
  const words = emptyWords(store, empty);
  const show = () => {
    const { run } = store;
    const drawn = !!run?.seconds?.length || (run?.state === 'running' && !!run.predicted_seconds?.length);
    host.hidden = !drawn;
    empty.hidden = drawn;
    say(memory.note, drawn ? 'dashed predicted, solid measured' : '');
    const ended = drawn && run.state !== 'done' ? run.sentence : ''; // the badge already shows that it is done
    const told = run ? [run.note, ended].filter(Boolean).join(' ') : '';
    stopped.hidden = !told;
    say(stopped, told);
    if (!drawn) words();
  };
  const stop = store.on(['run', 'budget', 'budget_bytes', 'plan', 'machine', 'offline', 'graph'], show);
  show();
  return () => {
    stop();
    for (const part of [title, times, equal, chart]) part?.close();
  };
}

// The text shown in place of a chart, with the run button.
function emptyWords(store, element) {
  const head = make('b');
  const text = make('p');
  const go = make('button', { type: 'button', class: 'btn' });
  const reason = make('p', { class: 'sw-reason' });
  go.addEventListener('click', () => {
    if (allowed(go)) store.ask({ do: 'run', steps: 3, check: true });
  });
  element.append(head, text, go, reason);
  return () => {
    const [title, sentence, label] = emptyState(store);
    say(head, title);
    say(text, sentence);
    go.hidden = !label;
    say(go, label ?? '');
    allow(go, noRun(store));
    say(reason, label && !noStep(store) ? noRun(store) : '');
  };
}

function emptyState(store) {
  const { run, machine } = store;
  const { verdict } = standing(store);
  const state = run?.state ?? 'empty';
  if (state === 'refused') return ['This computer has too little memory free.', run.sentence, 'Try again'];
  if (state === 'failed') return [`The run stopped in step ${run.step + 1}.`, run.sentence, 'Run again'];
  if (state === 'planning') return ['Getting ready to run.', spoken(run.doing) || 'The plan is being made.'];
  if (state === 'running') return ['Running.', spoken(run.doing) || 'Measurements come with the first step.'];
  if (state === 'cancelled') {
    const kept = `${plural(run.step_seconds.length, 'step')} of ${run.steps} done; what the last of them left is kept.`;
    return ['The run was stopped.', run.sentence || kept, 'Run again'];
  }
  if (noStep(store)) return ['There is no step to run.', `${noStep(store)}.`, 'Run 3 steps'];
  if (verdict === 'impossible') {
    return ['No plan to run.', `Raise the budget to ${machine.least} or more, then run.`];
  }
  if (run?.sentence) return ['This cannot run here.', run.sentence];
  return ['Nothing has run yet.', FIRST, 'Run 3 steps'];
}

const spoken = phrase => phrase && `${phrase[0].toUpperCase()}${phrase.slice(1)}.`;
