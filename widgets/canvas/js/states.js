// states
export function attachStates({ store }) { return () => store; }
