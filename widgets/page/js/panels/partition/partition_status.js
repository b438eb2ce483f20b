// The status of the partition, in a few words.
import { workerName } from '../../data/drawn_step.js';
import { bytesText, plural } from '../../core/units.js';

export function partitionStatus({ partition, graph, workerNews }) {
  if (!graph) return '';
  if (workerNews?.state === 'making') return `${workerName(workerNews)}: ${workerNews.doing}`;
  if (!partition) return 'not split yet';
  const { state, doing, shown } = partition;
  if (state === 'running') return doing || 'searching';
  if (state === 'failed') return 'the search failed';
  const found = shown ? `${plural(workersOf(shown), 'worker')}, ${bytesText(shown.bytes)} a step` : '';
  return state === 'cancelled' ? `cancelled${found && `; ${found}`}` : found;
}

export const workersOf = ({ mesh }) => mesh.reduce((product, parts) => product * parts, 1);
