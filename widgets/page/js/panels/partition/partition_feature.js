// The partition over workers: its tab, what Python sends for it, and the key that cancels its search.
import { mainButton } from '../../controls/main_button.js';
import { keep, registerFeature } from '../../core/features.js';
import { noPartition, partitioning } from '../../data/action_availability.js';
import { showWhole } from '../../controls/worker_choice.js';
import { WHOLE, WORKER, draw } from '../../data/drawn_step.js';
import { partitionPanel } from './partition_panel.js';
import { partitionStatus } from './partition_status.js';

// Planning a worker can be cancelled; afterwards the whole step is drawn again.
const making = ({ workerNews }) => workerNews?.state === 'making';
// A search that was stopped and has something left to try.
const resumable = ({ partition, partitionWorkers }) => partition?.resumable && partition.workers === partitionWorkers;
const busy = store => partitioning(store) || making(store);

function cancel({ store }) {
  if (!partitioning(store)) return false;
  store.ask({ do: 'cancel_partition' });
  return true;
}

function share(store) {
  if (making(store)) return store.workerNews.share ?? 0;
  return partitioning(store) ? (store.partition.share ?? 0) : null;
}

const button = mainButton('partition', {
  label: store => (busy(store) ? 'Cancel' : resumable(store) ? 'Resume' : 'Partition'),
  stopping: 'Cancelling',
  busy,
  reason: noPartition,
  press(store) {
    if (making(store)) return { do: 'cancel_worker' };
    if (partitioning(store)) return { do: 'cancel_partition' };
    if (resumable(store)) return { do: 'resume_partition' };
    return { do: 'partition', workers: store.partitionWorkers };
  },
});

function receiveWorker(store, message) {
  const shown = message.state === 'shown';
  store.set(shown ? { workerNews: message, shownWorker: message } : { workerNews: message });
  if (shown) draw(store, WORKER);
  else if (message.state !== 'making') draw(store, WHOLE);
}

function back({ store }) {
  if (making(store)) store.ask({ do: 'cancel_worker' });
  else if (store.drawn === WORKER) showWhole(store);
  else return false;
  return true;
}

registerFeature({
  name: 'partition',
  label: 'Partition',
  panel: (section, bench) => partitionPanel(section, bench, button),
  state: { partition: null, blocks: null, partitionWorkers: 8, worker: null, shownWorker: null, workerNews: null },
  receivers: {
    partition: (store, message) => store.set({ partition: message, partitionWorkers: message.workers }),
    blocks: keep('blocks'),
    worker: receiveWorker,
  },
  keys: { Escape: bench => cancel(bench) || back(bench) },
  tab: { busy, share, status: partitionStatus, wanted: () => false },
});
