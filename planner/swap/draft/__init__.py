"""A plan before it has times and addresses: an order, and what is away from the device when."""
