"""Hooks of modules, tensors and optimizers, and other callbacks of PyTorch: captured or refused."""
