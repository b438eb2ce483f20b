"""The speeds that several ways of training reach, beside what would be ideal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.errors import StowageError
from planner.units import format_percent
from widgets.info.argument_types import require


@dataclass(frozen=True, slots=True)
class Speed:
    """What one way of training a model reaches.

    Args:
        way: its name.
        samples: per second; 0 if it does not fit.
        share: of the ideal, from 0 to 1.
        note: what is worth knowing, or "".
    """

    way: str
    samples: float
    share: float
    note: str


@dataclass(frozen=True, slots=True)
class CompareSpeeds:
    """Speeds by model.

    Args:
        models: by name, its speeds; the first is the ideal.
    """

    models: Mapping[str, tuple[Speed, ...]]

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        best = {name: max(speeds[1:], key=lambda speed: speed.share) for name, speeds in self.models.items()}
        return " ".join(
            f"{name}: {speed.way} reaches {format_percent(speed.share)} of {self.models[name][0].way}."
            for name, speed in best.items()
        )


def get_compare_speeds(reached: Mapping[str, Mapping[str, tuple[float, str]]]) -> CompareSpeeds:
    """Relate speeds to the first of each model.

    Args:
        reached: by model and way, samples per second, 0 where it does not fit, and a note.

    Raises:
        StowageError: a model has fewer than two ways, or its first one is not above 0.
    """
    require(reached, Mapping, "dict", "the speeds by model and way")
    models = {}
    for name, ways in reached.items():
        ideal = next(iter(ways.values()), (0.0, ""))[0]
        if len(ways) < 2 or not ideal > 0:
            raise StowageError(f"{name} has no speed to compare with: give the ideal first, and a way beside it")
        models[name] = tuple(
            Speed(way, float(samples), float(samples) / ideal, note) for way, (samples, note) in ways.items()
        )
    if not models:
        raise StowageError("there is nothing to compare: give the speeds of a model, or of several")
    return CompareSpeeds(models)
