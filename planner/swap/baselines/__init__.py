"""Baselines that a plan must beat."""
