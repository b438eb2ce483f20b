"""Deciding what leaves the device, and when it comes back."""
