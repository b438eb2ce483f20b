// The words of the panels, as the field uses them.
export const WORDS = [
  ['op', 'one call of a kernel, such as a matrix product; a step is a few hundred to some ten thousand of them'],
  ['tensor', 'what ops read and write; views of one storage share its memory'],
  ['activation', 'what the forward pass leaves for the backward pass'],
  ['peak', 'the most memory that is in use at one time; it must be within the budget'],
  ['budget', 'how much of the device’s memory a plan may use'],
  ['arena', 'one block of that size, in which the plan gives each tensor its address'],
  ['swap', 'a copy to the host’s memory (out) and back (in), so that others can use the space meanwhile'],
  ['recompute', 'to run an op again later rather than to keep or copy what it made'],
  ['stall', 'time in which compute waits for a copy'],
  ['bound', 'a step time that no plan within the budget can beat'],
  ['collective', 'an exchange between all workers of a group, such as an all-reduce'],
];
