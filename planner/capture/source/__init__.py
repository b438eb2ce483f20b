"""The lines of a user's code that a step runs, and the names of their files."""
