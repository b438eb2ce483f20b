"""Ranks of PyTorch's launcher: how they find each other, notice each other's loss, and agree on what they run."""
