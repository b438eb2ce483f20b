"""The input of the planners, as arrays that the kernels read."""
