"""What a choice costs: bytes moved by slots, ops, and fetches that ops share."""
