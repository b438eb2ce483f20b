"""Files of snapshots: a restricted unpickler, and checks of every field."""
