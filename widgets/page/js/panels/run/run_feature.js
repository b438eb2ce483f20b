// The run: its tab, and what Python sends for it.
import { mainButton } from '../../controls/main_button.js';
import { make, say } from '../../core/dom.js';
import { keep, registerFeature } from '../../core/features.js';
import { noRun, noStep, running } from '../../data/action_availability.js';
import { isIdeal, standing } from '../../data/budget_answers.js';
import { runPanel } from './run_panel.js';
import { runStatus } from './run_status.js';

const SEARCHED = new Set(['done', 'paused']); // searched for the full time

// Whether the plan is the best there will be.
function wanted(store) {
  const { verdict, plan } = standing(store);
  const ideal = plan && isIdeal(plan.step_seconds, plan.ideal_seconds);
  const best = ideal || verdict === 'fits' || (verdict === 'swap' && SEARCHED.has(store.search?.state));
  return best && !noRun(store);
}

const share = ({ run }) => (run?.state === 'running' ? (run.share ?? 0) : null);

const button = mainButton('run', {
  label: store => (running(store) ? 'Stop' : `Run on this ${store.graph?.device === 'cuda' ? 'GPU' : 'CPU'}`),
  stopping: 'Stopping',
  busy: running,
  reason: noRun,
  press: store => (running(store) ? { do: 'cancel_run' } : { do: 'run', steps: 3, check: true }),
});

// Why nothing can be run.
function beside(store) {
  const element = make('span', { class: 'sw-reason medium-hide', 'aria-hidden': 'true' });
  const show = () => {
    say(element, noStep(store) ? 'no step to run' : '');
    element.title = noStep(store);
  };
  const close = store.on(['graph'], show);
  show();
  return { element, close };
}

registerFeature({
  name: 'run',
  label: 'Run',
  panel: (section, bench) => runPanel(section, bench, button),
  state: { run: null },
  receivers: { run: keep('run') },
  tab: { busy: running, share, status: runStatus, button, wanted, beside },
});
