"""The list of plans: going back to one, comparing two, and keeping them in a file."""
