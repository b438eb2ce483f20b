// The six kinds of storage with colours of their own, from the bottom of a stack to its top, and the phases of a step.
export const KINDS = ['parameter', 'optimizer_state', 'input', 'activation', 'gradient', 'workspace'];
export const KIND_LABELS = ['Parameter', 'Optimizer state', 'Input', 'Activation', 'Gradient', 'Workspace'];
export const KIND_PLURALS = ['parameters', 'optimizer states', 'inputs', 'activations', 'gradients', 'workspaces'];
export const PHASES = ['forward', 'backward', 'optimizer'];
export const PARAMETER = 0;
export const ACTIVATION = 3;

// The colour of a kind in markup.
export const kindVariable = kind => `var(--sw-${KINDS[kind].replace('_', '-')})`;
