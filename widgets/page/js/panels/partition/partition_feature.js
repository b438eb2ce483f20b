// The partition over workers: its tab, what Python sends for it, and the key that cancels its search.
import { mainButton } from '../../controls/main_button.js';
import { keep, registerFeature } from '../../core/features.js';
import { noPartition, partitioning } from '../../data/action_availability.js';
import { partitionPanel } from './partition_panel.js';
import { partitionStatus } from './partition_status.js';

function cancel({ store }) {
  if (!partitioning(store)) return false;
  store.ask({ do: 'cancel_partition' });
  return true;
}

const share = ({ partition }) => (partition?.state === 'running' ? (partition.share ?? 0) : null);

const button = mainButton('partition', {
  label: store => (partitioning(store) ? 'Cancel' : 'Partition'),
  stopping: 'Cancelling',
  busy: partitioning,
  reason: noPartition,
  press: store =>
    partitioning(store) ? { do: 'cancel_partition' } : { do: 'partition', workers: store.partitionWorkers },
});

registerFeature({
  name: 'partition',
  label: 'Partition',
  panel: (section, bench) => partitionPanel(section, bench, button),
  state: { partition: null, blocks: null, partitionWorkers: 8, worker: null },
  receivers: {
    partition: (store, message) => store.set({ partition: message, partitionWorkers: message.workers }),
    blocks: keep('blocks'),
  },
  keys: { Escape: cancel },
  tab: { busy: partitioning, share, status: partitionStatus, wanted: () => false },
});
