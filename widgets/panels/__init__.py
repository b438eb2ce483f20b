"""The panels as widgets, the workbench with all of them, and saving them as a file."""
