"""What goes on behind the panels of a workbench: capture, plans, searches, runs. No widget and no browser."""
