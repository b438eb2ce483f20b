"""The methods of searching for plans."""
