"""The calls with which a worker computes its part of an op."""
