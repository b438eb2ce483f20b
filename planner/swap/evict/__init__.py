"""The passes over the slots that decide what leaves the device, when, and when it comes back."""
