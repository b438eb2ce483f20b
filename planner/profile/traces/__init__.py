"""Op times from traces of `torch.profiler`."""
