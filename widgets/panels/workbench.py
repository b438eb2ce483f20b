"""The Workbench: what a step needs, what a budget costs, and why, in one widget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from planner.graph import Graph
from planner.machine import Machine
from planner.plan import SwapPlan
from planner.run import Run
from planner.swap import SwapSearch
from widgets.page import EVERY_PANEL
from widgets.panels.panel import Panel

if TYPE_CHECKING:
    from planner.partition import PartitionPlan


class Workbench(Panel):
    """All views of a step, linked, with a budget slider, plan search and runs.

    The step is captured in the background; do not use its model before `graph`, which waits for the capture, returns.

    Args:
        source: a step, a graph, a pair of one of these and a plan for it, or another view.
        machine: the machine to plan for, or its name; by default the attached GPU, or a V100 where there is none.
        budget: device memory, such as `"8GiB"` or `"50%"` of what the step takes; by default the machine's memory if
            the step needs more, else what the step needs.
        seed: seed of the random choices.

    Raises:
        StowageError: the source cannot be shown, or the machine or budget is invalid.
    """

    parts = EVERY_PANEL

    @property
    def graph(self) -> Graph:
        """The graph; blocks until the capture has ended.

        Raises:
            StowageError: the step cannot be captured.
        """
        return self.session.graph

    @property
    def plan(self) -> SwapPlan | None:
        """The plan that is shown, or None; blocks until the first plan at this budget was found or failed."""
        return self.session.plan

    @property
    def budget(self) -> int:
        """The budget in bytes of device memory; settable to any amount that `plan_swaps` accepts."""
        return self.session.budget

    @budget.setter
    def budget(self, budget: str | int) -> None:
        self.session.budget = budget

    @property
    def machine(self) -> Machine:
        """The machine that is planned for; settable to a machine or its name."""
        return self.session.machine

    @machine.setter
    def machine(self, machine: str | Machine) -> None:
        self.session.machine = machine

    @property
    def search(self) -> SwapSearch | None:
        """The search at this budget, or None before one was started; blocks while one is being started."""
        return self.session.search

    @property
    def partition(self) -> PartitionPlan | None:
        """The partition that is shown, such as `planner.run_workers` takes; None before there is any."""
        return self.session.partition

    @property
    def run(self) -> Run | None:
        """The last run, or None before one was started."""
        return self.session.run

    def start_search(self, seconds: float | None = 30.0, method: str | None = None) -> None:
        """Start or resume the search for a faster plan at this budget; returns at once.

        Args:
            seconds: the search pauses after this time; None for no limit.
            method: one of `planner.swap.METHODS`, by default that of the last search, at first `"auto"`, which swaps,
                recomputes, or does both.

        Raises:
            StowageError: there is nothing to search for, or no such method.
        """
        self.session.start_search(seconds, method)
        self._show("search")

    def start_partition(self, workers: int | None = None, memory: str | int | None = None) -> None:
        """Start the search for the partition over several workers that moves the fewest bytes; returns at once.

        Args:
            workers: how many there are; by default as many as last time, at first 8.
            memory: what each worker may take, such as `"8GiB"`, `"budget"`, or `"none"` for as little as splitting
                gives; by default as last time, at first `"none"`.

        Raises:
            StowageError: the number of workers or the memory is not possible.
        """
        self.session.start_partition(workers, memory=memory)
        self._show("partition")

    def show_worker(self, worker: int | None) -> None:
        """Show what one worker of the partition does, in all views; returns at once.

        Args:
            worker: which worker; None for the whole step.

        Raises:
            StowageError: there is no partition, or no such worker.
        """
        self.session.show_worker(worker)

    def start_run(self, steps: int = 3, *, check: bool | Literal["first"] = True) -> None:
        """Run the plan that is shown, on this computer; returns at once.

        Args:
            steps: number of steps.
            check: whether to run eager PyTorch beside every step, or the first two, and to compare all bits.

        Raises:
            StowageError: there is nothing to run.
        """
        self.session.start_run(steps, check=check)
        self._show("run")

    def _show(self, tab: str) -> None:
        """Bring a tab to the front, also in a page that receives no messages because the kernel is busy."""
        self.tab = (tab, self.tab[1] + 1)
