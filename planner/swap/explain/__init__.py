"""Explanations of plans."""
