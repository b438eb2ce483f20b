"""What a self test found, stage by stage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

Outcome = Literal["passed", "failed", "skipped"]
Figures = Mapping[str, int | float | str]
_VERSION = 1


@dataclass(frozen=True, slots=True)
class StageResult:
    """The result of a stage.

    Args:
        number: of the stage, from 1.
        name: one word or two.
        outcome: `"passed"`, `"failed"`, or `"skipped"` where the device has nothing to test.
        summary: what was found, a sentence.
        figures: by name, what was measured; bytes and seconds have names that say so.
        seconds: how long it took.
    """

    number: int
    name: str
    outcome: Outcome
    summary: str
    figures: Figures
    seconds: float

    def __str__(self) -> str:
        return f"{self.number} {self.name:<12} {self.outcome:<8} {self.summary}"


@dataclass(frozen=True, slots=True)
class SelfTestReport:
    """A self test.

    Args:
        device: PyTorch's name of the type of device.
        environment: versions and hardware, by name.
        stages: in order; the first that failed is the last.
    """

    device: str
    environment: Mapping[str, str]
    stages: tuple[StageResult, ...]

    @property
    def passed(self) -> bool:
        """Whether no stage failed."""
        return all(stage.outcome != "failed" for stage in self.stages)

    def __str__(self) -> str:
        return "\n".join(map(str, self.stages))

    __repr__ = __str__


def report_json(report: SelfTestReport) -> str:
    """A report as JSON that can be attached to an issue."""
    stages = [asdict(stage) for stage in report.stages]
    facts = {"version": _VERSION, "device": report.device, "passed": report.passed, "stages": stages}
    return json.dumps({**facts, "environment": dict(report.environment)}, indent=1) + "\n"
