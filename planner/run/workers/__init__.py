"""Steps of a partition: a process for each worker, and collectives between them."""
