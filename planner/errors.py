"""The one exception a user is meant to read."""


class StowageError(Exception):
    """A request that cannot be met, said in one sentence that tells the user what to change."""
