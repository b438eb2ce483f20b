"""Plan where every tensor of a PyTorch step lives, and when; then run the plan inside a memory budget."""
