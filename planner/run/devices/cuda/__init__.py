"""NVIDIA's GPUs as devices; AMD's too, which PyTorch calls by the same name."""
