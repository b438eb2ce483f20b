"""Lowering of recorded calls to a graph and its program."""
