"""What a planner is given, as arrays that the kernels read."""
