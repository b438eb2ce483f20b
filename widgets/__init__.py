"""Views of plans in a notebook."""
