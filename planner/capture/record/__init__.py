"""Recording the kernel calls of a step that runs on fake tensors."""
