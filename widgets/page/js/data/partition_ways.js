// How a partition splits the tensors of a part of the model: in words, and as a tone of the ramp.
import { WORKER, drawnStorages } from './drawn_step.js';
import { PARAMETER } from '../core/kinds.js';

const NEARLY = 0.9;
const known = new WeakMap();

// Of the partition that is shown: by storage that is drawn the words for its split, and by words, from the one of most
// bytes on, their tone (0..1).
export function waysOf(store) {
  const shown = store.partition?.shown;
  if (!shown) return { words: new Map(), tones: new Map() };
  const drawn = store.drawn === WORKER ? store.shownWorker : null;
  if (known.get(shown)?.drawn !== drawn) {
    const words = new Map();
    const bytes = new Map();
    for (const row of shown.rows) {
      const text = [...new Set(row.ways)].length === 1 ? row.ways[0] : row.ways.join(' / ');
      for (const storage of drawnStorages(store, row.storages)) words.set(storage, text);
      bytes.set(text, (bytes.get(text) ?? 0) + row.bytes);
    }
    const order = [...bytes.keys()].sort((a, b) => bytes.get(b) - bytes.get(a));
    const tones = new Map(order.map((text, k) => [text, 0.85 - (0.7 * k) / Math.max(1, order.length - 1)]));
    known.set(shown, { words, tones, drawn });
  }
  return known.get(shown);
}

// The split of nearly all bytes of some storages, `mixed` if they differ, '' if none of them is shown; parameters count
// before others.
export function sharedWay({ words }, graphData, storages) {
  const [parameters, others] = [new Map(), new Map()];
  for (const storage of storages) {
    const text = words.get(storage);
    const sums = graphData.kindOf(storage) === PARAMETER ? parameters : others;
    if (text) sums.set(text, (sums.get(text) ?? 0) + graphData.bytesOf(storage));
  }
  const sums = [...(parameters.size ? parameters : others)];
  const total = sums.reduce((sum, [, bytes]) => sum + bytes, 0);
  const [text, bytes] = sums.reduce((most, each) => (each[1] > most[1] ? each : most), ['', 0]);
  return !text || bytes >= NEARLY * total ? text : 'mixed';
}

// Where ops are coloured by partition, the tone of one by what it touches; -1 if none of that is shown, else null.
export function opTone(store, graphData, op) {
  if (store.metric !== 'partition') return null;
  const ways = waysOf(store);
  const text = sharedWay(ways, graphData, graphData.touches(op));
  return text ? (ways.tones.get(text) ?? 0.5) : -1;
}
