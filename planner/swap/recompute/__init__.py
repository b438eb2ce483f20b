"""Deciding which ops run again, so that what they make need not stay on the device."""
