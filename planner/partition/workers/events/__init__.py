"""The calls of a worker while they are put together, and collectives as operators of our own."""
