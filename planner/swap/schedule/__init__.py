"""Orders of the ops, and which of them can be planned for at all."""
