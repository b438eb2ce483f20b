"""What each worker computes and holds: its graph, the plan of it, and its parts of the state."""
