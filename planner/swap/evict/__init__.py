"""The eviction passes: one pass over the slots decides what leaves the device, when, and when it comes back."""
