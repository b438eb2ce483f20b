"""From a PyTorch model to the dataflow graph of its whole step."""
