"""The Workbench: what a step needs, what a budget costs, and why, in one widget."""

from __future__ import annotations

from typing import Literal

from planner.graph import Graph
from planner.machine.types import Machine
from planner.plan import SwapPlan
from planner.run import Run
from planner.swap import SwapSearch
from widgets.canvas.panel import Panel


class Workbench(Panel):
    """All views of a step, linked, with a budget to move, plans to search for and to run.

    The step is captured in the background; leave its model alone until `graph` is there, which waits for it.

    Args:
        source: a step, a graph, a pair of one of these and a plan for it, or another view.
        machine: to plan for, or its name; without it, the attached GPU, or a V100 where there is none.
        budget: device memory, such as `"8GiB"` or `"50%"` of what the step takes; without it, what the machine has if
            the step needs more, else what the step needs.
        seed: for random choices.

    Raises:
        StowageError: it is nothing that can be shown, or there is no such machine or amount.
    """

    parts = ("header", "graph", "memory", "holders", "streams", "selection", "search", "run")

    @property
    def graph(self) -> Graph:
        """The graph; waits for the capture.

        Raises:
            StowageError: the step cannot be captured.
        """
        return self.session.graph

    @property
    def plan(self) -> SwapPlan | None:
        """The plan that is drawn, None where there is none; waits for the first one at this budget."""
        return self.session.plan

    @property
    def budget(self) -> int:
        """Bytes of device memory that are planned for; set it to an amount as `plan_swaps` takes it."""
        return self.session.budget

    @budget.setter
    def budget(self, budget: str | int) -> None:
        self.session.budget = budget

    @property
    def machine(self) -> Machine:
        """The machine that is planned for; set it to one or to its name."""
        return self.session.machine

    @machine.setter
    def machine(self, machine: str | Machine) -> None:
        self.session.machine = machine

    @property
    def search(self) -> SwapSearch | None:
        """The search at this budget, None before there is one; waits for one that is just beginning."""
        return self.session.search

    @property
    def run(self) -> Run | None:
        """The last run, None before there is one."""
        return self.session.run

    def start_search(self, seconds: float | None = 30.0) -> None:
        """Search for a faster plan, or go on with the search at this budget; returns at once.

        Args:
            seconds: after which it pauses; None for as long as it finds anything.

        Raises:
            StowageError: there is nothing to search for.
        """
        self.session.start_search(seconds)
        self._show("search")

    def start_run(self, steps: int = 3, *, check: bool | Literal["first"] = True) -> None:
        """Run the plan that is drawn, on this computer; returns at once.

        Args:
            steps: how many.
            check: whether to run eager PyTorch beside every step, or the first two, and to compare all bits.

        Raises:
            StowageError: there is nothing to run.
        """
        self.session.start_run(steps, check=check)
        self._show("run")

    def _show(self, tab: str) -> None:
        """Bring a tab to the front, in a page that hears nothing else because the kernel is busy, too."""
        self.tab = (tab, self.tab[1] + 1)
