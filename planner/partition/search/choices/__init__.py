"""What a search chooses from, under which rules, and what it finds."""
