"""Ways of searching for plans, one after the other."""
