"""Checkpoints in the format of `torch.distributed.checkpoint`, of which every worker writes its own part."""
