"""The partition of a step over workers, and what each worker does, as one watches it."""
