"""How fast any plan could be: proven bounds."""
