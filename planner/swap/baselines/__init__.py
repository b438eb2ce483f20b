"""What a plan must beat."""
