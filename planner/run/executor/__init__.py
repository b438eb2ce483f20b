"""Execution of one step by a plan, on a device."""
