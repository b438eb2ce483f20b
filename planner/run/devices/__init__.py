"""The devices that plans run on: memory, and streams of calls and copies."""
