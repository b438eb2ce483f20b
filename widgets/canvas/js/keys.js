// keys
export function attachKeys({ store }) { return () => store; }
