"""Fake tensors that a step is captured on, in place of real ones."""
