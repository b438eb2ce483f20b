"""The kernels of each device, and the calls that are made in their place."""
