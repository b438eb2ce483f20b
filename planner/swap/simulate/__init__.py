"""Predicts how long a plan or an unplaced plan takes, from its streams and the link."""
