"""Checks of a run against eager PyTorch, against the state that its graph was captured for, and against other runs."""
