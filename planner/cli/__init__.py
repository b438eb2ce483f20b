"""The command line: the same functions, thin."""
