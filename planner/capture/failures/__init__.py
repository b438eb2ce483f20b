"""What stands in the way of capturing a step, in words, and what to do about it."""
