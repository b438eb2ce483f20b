"""The state of a session and the messages it sends to its views."""
