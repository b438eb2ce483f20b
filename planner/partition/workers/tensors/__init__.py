"""How workers share storages, and what they send each other to share them otherwise."""
