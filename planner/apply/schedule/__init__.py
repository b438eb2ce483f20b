"""What of a plan can be expressed in ordinary PyTorch, when, and in how many bytes."""
