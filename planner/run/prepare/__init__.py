"""Preparation of a run: checks that memory suffices, and makes a plan for this computer."""
