"""Searches that run in threads, and what is asked of them."""
