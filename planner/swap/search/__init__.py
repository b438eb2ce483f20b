"""Searches for plans that run in threads, and their inputs."""
