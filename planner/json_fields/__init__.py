"""Reading JSON that may be damaged: the envelope of a file, and fields that are exactly of the expected type."""

from planner.json_fields.envelope import Envelope, checksum
from planner.json_fields.fields import (
    LONGEST_TEXT,
    DamageError,
    amounts,
    items,
    number,
    objects,
    pairs,
    same_names,
    seconds,
    spans,
    table,
    text,
    whole,
    whole_or_none,
    wholes,
)

__all__ = [
    "LONGEST_TEXT",
    "DamageError",
    "Envelope",
    "amounts",
    "checksum",
    "items",
    "number",
    "objects",
    "pairs",
    "same_names",
    "seconds",
    "spans",
    "table",
    "text",
    "whole",
    "whole_or_none",
    "wholes",
]
