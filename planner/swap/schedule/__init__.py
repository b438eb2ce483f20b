"""Orders of the ops, and which of them have a plan at all."""
