"""Where the tensors of a step lie in the arena and the host slab, and which bytes its calls and copies touch."""
