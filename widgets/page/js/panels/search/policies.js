// What the names beside the lines of the search curve mean.
const MEANINGS = {
  resident: 'Nothing leaves the device.',
  'on-demand': 'The least recently used tensor leaves when room is needed, and comes back when an op waits for it.',
  'lru-prefetch': 'The same tensors leave as on demand, with copies that run ahead.',
  tflms: 'Activations not needed for many ops leave, and come back some ops ahead, as in TensorFlow LMS.',
  'save-on-cpu': 'All that the forward pass saves for the backward pass leaves, as by save_on_cpu in PyTorch.',
  'known plan': 'A plan that was found before, for this budget or a smaller one.',
  'lower bound': 'No plan within this budget is faster.',
};
const ONCE = 'No plan within this budget that runs each op once is faster.';

// `method`: of the search, for which a bound holds.
export const meaning = (name, method) =>
  name === 'lower bound' && ['swap', 'swapadvisor'].includes(method) ? ONCE : MEANINGS[name];
