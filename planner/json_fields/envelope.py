"""What every file of the project is wrapped in: its format, its version, and a checksum of all the rest."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, NoReturn

from planner.errors import StowageError
from planner.json_fields.fields import DamageError, same_names


@dataclass(frozen=True)
class Envelope:
    """How a kind of file begins, and what a reader is told who gives another.

    Args:
        noun: what the file holds, such as "plan".
        format: the name of its format.
        version: of the format.
        remedy: what to do about a file that cannot be read.
        names: its fields, or None if whoever opens it checks them.
    """

    noun: str
    format: str
    version: int
    remedy: str
    names: frozenset[str] | None = None

    def seal(self, fields: dict[str, Any]) -> str:
        """The JSON text of a file with these fields.

        Raises:
            ValueError: fields are named, and one holds a number that is not finite.
        """
        body = {"format": self.format, "version": self.version, **fields}
        sealed = {"checksum": checksum(body), **body}
        return json.dumps(sealed, separators=(",", ":"), allow_nan=self.names is None)

    def open(self, text: str, path: object = None) -> dict[str, Any]:
        """The fields of a file, with its format and version.

        Args:
            text: the JSON text.
            path: where it is from, for the error.

        Raises:
            StowageError: the text is not of this format and version, or was changed after it was saved.
        """
        this, whole = ("this", f"this {self.noun}") if path is None else (path, path)
        try:
            data = self._parsed(text)
            if not isinstance(data, dict) or data.get("format") != self.format:
                raise StowageError(
                    f'{this} is not a {self.noun}: the JSON lacks "format": "{self.format}"; '
                    f"give the file of a {self.noun}"
                )
            version = data.get("version")
            if type(version) is not int or version != self.version:
                raise StowageError(
                    f"{whole} has version {str(version)[:40]!r} and this program reads version {self.version}; "
                    f"{self.remedy}"
                )
            if self.names is not None:
                same_names(data, {"format", "version", "checksum", *self.names}, f"the {self.noun}")
            if data.pop("checksum", None) != checksum(data):
                raise DamageError("its checksum does not match, so it was changed after it was saved")
        except DamageError as error:
            raise StowageError(f"{whole} is damaged: {error}; {self.remedy}") from error
        except (ValueError, RecursionError) as error:
            raise StowageError(
                f"{this} is not a {self.noun}: the JSON breaks off or is malformed; {self.remedy}"
            ) from error
        return data

    def _parsed(self, text: str) -> Any:
        if self.names is None:
            return json.loads(text)
        return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse)


def checksum(body: dict[str, Any]) -> str:
    """The checksum of all fields of a file but the checksum itself."""
    text = json.dumps(body, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DamageError("it gives a field twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise DamageError(f"it holds {constant}, which is no number")
