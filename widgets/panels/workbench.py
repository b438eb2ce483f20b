"""The Workbench: what a step needs, what a budget costs, and why, in one widget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from planner.graph import Graph
from planner.machine import Machine
from planner.plan import PlanComparison, SwapPlan
from planner.run import Run
from planner.swap import SwapSearch
from widgets.page import EVERY_PANEL
from widgets.panels.panel import Panel
from widgets.session import PlanRow, PlanTable

if TYPE_CHECKING:
    from planner.partition import PartitionPlan


class Workbench(Panel):
    """All views of a step, linked, with a budget slider, plan search and runs.

    The step is captured in the background; do not use its model before `graph`, which waits for the capture, returns.

    Args:
        source: a step, a graph, a pair of one of these and a plan for it, or another view.
        machine: the machine to plan for, or its name; by default the attached GPU, or a V100 where there is none.
        budget: device memory, such as `"8GiB"` or `"50%"` of what the step takes; by default the machine's memory if
            the step needs more, on a GPU less what the CUDA context and libraries take, else what the step needs.
        seed: seed of the random choices.
        device: what the step is captured for and run on, `"cpu"`, or `"cuda"` for the attached GPU.

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
        """The plan that is shown, or None; blocks until the first plan at this budget was found or failed.

        It is the best known one, which need not be what the last search came to, unless another was chosen. Settable to
        any valid plan of this step, which is then in `plans`, too.
        """
        return self.session.plan

    @plan.setter
    def plan(self, plan: SwapPlan) -> None:
        self.session.plan = plan

    @property
    def plans(self) -> PlanTable:
        """The plans shown, and the best of each search, for all machines and budgets; a table in a notebook.

        Blocks until the first plan at this budget was found or failed.
        """
        return self.session.plans

    @property
    def budget(self) -> int:
        """The budget in bytes of device memory; settable to any amount that `plan_swaps` accepts.

        An amount for which there is no plan is shown as such, and warned of once the step is captured.
        """
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
        """Start the search for a faster plan at this budget, or go on with it; returns at once.

        A search that has paused or was cancelled goes on from where it was, and one that is running is left as it is.
        Another method has a search of its own, to which the one that is running gives way.

        Its best plan has a row in `plans`, and is shown where no faster one is known; `search.wait()` waits for it.

        Args:
            seconds: the search pauses after this time; None for no limit.
            method: one of `planner.swap.METHODS`, by default that of the last search, at first `"auto"`, which swaps,
                recomputes, or does both.

        Raises:
            StowageError: there is nothing to search for, or no such method.
        """
        self.session.start_search(seconds, method)
        self._show("search")

    def show_plan(self, plan: int | str) -> PlanRow:
        """Go back to a plan of the list, with its machine and its budget; returns its row once it is shown.

        Args:
            plan: its number, counted from 1, or its name in the list.

        Raises:
            StowageError: there is not exactly one such plan.
        """
        return self.session.show_plan(plan)

    def undo(self) -> PlanRow:
        """Show the plan, machine and budget that were shown before; returns the row of that plan.

        Raises:
            StowageError: there was none.
        """
        return self.session.step_plans(-1)

    def redo(self) -> PlanRow:
        """Show again what `undo` went back from; returns the row of that plan.

        Raises:
            StowageError: nothing was undone.
        """
        return self.session.step_plans(1)

    def note_plan(self, plan: int | str, note: str | None = None, *, name: str | None = None) -> None:
        """Write a note on a plan of the list, or name it; a plan with a name or a note is never dropped.

        Args:
            plan: its number, counted from 1, or its name in the list.
            note, name: the new words, `""` for none; by default those that it has.

        Raises:
            StowageError: there is not exactly one such plan, or the text is too long.
        """
        self.session.write_plan(plan, name, note)

    def compare_plans(self, first: int | str, second: int | str) -> PlanComparison:
        """Say in what two plans of the list differ; `widgets.compare_plans` draws the result.

        Args:
            first, second: their numbers, or their names in the list.

        Raises:
            StowageError: there is not exactly one such plan, or the two provide for different scratch memory.
        """
        return self.session.compare_plans(first, second)

    def save_plans(self, path: str | Path) -> None:
        """Save the list of plans, with names and notes, as JSON.

        Raises:
            StowageError: `path` is no path, or the file cannot be written; an existing one is left unchanged.
        """
        self.session.save_plans(path)

    def load_plans(self, path: str | Path) -> int:
        """Add the plans of a file to the list, but those that are there already; returns how many were new.

        Raises:
            StowageError: `path` is no path, or the file cannot be read, is of another step, holds a plan that is not
                valid, or one for a machine that is not known; then the list is as it was.
        """
        return self.session.load_plans(path)

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
