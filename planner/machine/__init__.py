"""Machines: how fast ops and copies are, preset or measured."""
