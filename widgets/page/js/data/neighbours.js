// What a tensor or an op is and where it comes from: shape, line of code, and the ops before and after it.
import { countText } from '../core/units.js';

const HELD = 2; // kinds up to this one exist before the step
const NAMED = 2; // ops whose names are given, of several

// Pairs of a name and a text, those that are known.
export function storageFacts(graph, storage) {
  const made = graph.kindOf(storage) > HELD ? graph.writers(storage).slice(0, 1) : [];
  return known(graph, [
    ['shape', graph.storageLayout(storage)],
    ['source', graph.sourceOfStorage(storage)],
    ['made by', made],
    ['used by', graph.readers(storage)],
  ]);
}

// Lines for the title of a control that stands for storages: of a single one, with its facts.
export function titleOf(name, graph, storages) {
  const facts = storages.length === 1 ? storageFacts(graph, storages[0]) : [];
  return [name, ...facts.map(fact => fact.join(' '))].join('\n');
}

// The ops before it made what it reads; those after it read what it makes, until another op writes that again.
export function opFacts(graph, op) {
  const before = [...graph.reads(op)].map(storage => graph.writers(storage).findLast(other => other < op));
  const after = [...graph.writes(op)].flatMap(storage => {
    const next = graph.writers(storage).find(other => other > op) ?? Infinity;
    return [...graph.readers(storage)].filter(other => other > op && other <= next);
  });
  return known(graph, [
    ['result', graph.opLayout(op)],
    ['source', graph.sourceOf(op)],
    ['inputs from', before.filter(other => other !== undefined)],
    ['used by', after],
  ]);
}

const known = (graph, facts) =>
  facts
    .map(([name, found]) => [name, typeof found === 'string' ? found : opsText(graph, found)])
    .filter(([, text]) => text);

// `conv1 convolution`; of several, how many and the first: `12: conv1 convolution, relu, …`.
function opsText(graph, found) {
  const ops = [...new Set(found)].sort((a, b) => a - b);
  const names = ops.slice(0, NAMED).map(op => graph.opTitle(op));
  const more = ops.length > NAMED ? ', …' : '';
  return ops.length < 2 ? names.join() : `${countText(ops.length)}: ${names.join(', ')}${more}`;
}
