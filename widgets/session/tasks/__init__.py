"""The background jobs of a session, one kind per module."""
