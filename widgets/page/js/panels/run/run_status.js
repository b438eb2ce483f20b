// The status of the run, in a few words.
import { secondsText } from '../../core/units.js';

export function runStatus({ run }) {
  if (!run || run.state === 'empty') return 'not run';
  if (run.state === 'planning') return run.doing || 'planning';
  if (run.state === 'running') return run.doing || `running, step ${Math.min(run.steps, run.step + 1)} of ${run.steps}`;
  if (run.state === 'done') {
    const last = run.step_seconds[run.step_seconds.length - 1];
    return `done, ${run.steps} step${run.steps === 1 ? '' : 's'}${last ? `, the last took ${secondsText(last)}` : ''}`;
  }
  if (run.state === 'refused') return 'not run: too little memory free';
  if (run.state === 'failed') return 'the run failed';
  return `stopped after ${run.step_seconds.length} of ${run.steps} steps`;
}
