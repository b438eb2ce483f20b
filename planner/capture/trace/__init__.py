"""Tracing of a step: its kernel calls, its effects, and the comparison of two traces."""
