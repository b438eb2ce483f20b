"""What is checked of one call, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from planner.partition.strategy import Strategy
from planner.partition.tdl import Description, Region
from planner.partition.verify.kernel_call import KernelCall
from planner.partition.verify.values import close, first_difference

#: Changes a strategy, or leaves it out; for showing that a wrong one is found.
Alteration = Callable[[Strategy], Strategy | None]
#: Changes what one worker is said to need.
RegionAlteration = Callable[[tuple[Region | None, ...]], tuple[Region | None, ...]]


@dataclass(frozen=True)
class Fault:
    """Something that a description says and its kernel does not do."""

    check: str
    call: str
    strategy: str
    reason: str

    def __str__(self) -> str:
        return f"{self.call}, {self.strategy or 'whole'}: {self.reason}"


@dataclass
class Proof:
    """What was checked of a call, and what was found wrong.

    Args:
        checks: how many checks of each kind were made.
        strategies: how many strategies were proven.
        faults: what is wrong.
    """

    checks: dict[str, int] = field(default_factory=dict)
    strategies: int = 0
    faults: list[Fault] = field(default_factory=list)


class Trial:
    """A call under examination.

    Args:
        call, description: the call and what is said of it.
        proof: where the outcomes go.
        alter_regions: a change to the regions that workers are said to need.
    """

    def __init__(
        self, call: KernelCall, description: Description, proof: Proof, alter_regions: RegionAlteration | None
    ) -> None:
        self.call, self.description, self.proof = call, description, proof
        self.alter_regions = alter_regions or (lambda found: found)
        self.expected = call.run()
        self.generator = torch.Generator().manual_seed(0)
        self.strategy = ""

    def same(self, check: str, found: Tensor, expected: Tensor | None, what: str) -> None:
        """Check that values agree but for rounding."""
        if expected is not None:
            right = close(found, expected)
            self.check(check, right, "" if right else f"{what}: {first_difference(found, expected)}")

    def check(self, check: str, right: bool, reason: str) -> None:
        """Count a check, and note why it failed if it did."""
        self.proof.checks[check] = self.proof.checks.get(check, 0) + 1
        if not right:
            self.fail(check, reason)

    def fail(self, check: str, reason: str) -> None:
        """Note a fault."""
        self.proof.faults.append(Fault(check, str(self.call), self.strategy, reason))
