"""The session behind the panels of one graph: its state, its background work, and the requests it answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from weakref import finalize

from planner.errors import StowageError
from planner.files import PATH, require_arguments
from planner.graph import Graph
from planner.machine import Machine
from planner.memory import parse_budget
from planner.plan import PlanComparison, SwapPlan
from planner.run import Run
from planner.search import check_limits
from planner.step import Step
from planner.swap import SwapSearch
from widgets.messages import Message
from widgets.session import interrupts
from widgets.session.feature_registry import cancel_features, carry_out, close_features
from widgets.session.partition import partitioning, worker_views
from widgets.session.partition.partition_state import Pins
from widgets.session.plans import listing
from widgets.session.state import machines
from widgets.session.state.message_bus import Listener
from widgets.session.state.plan_table import PlanRow, PlanTable
from widgets.session.state.session_state import SessionState
from widgets.session.state.source import read_source
from widgets.session.tasks import capturing, planning, running, searching, sweeping

if TYPE_CHECKING:
    from planner.partition import PartitionPlan


class Session:
    """The background work for one step; closing the session, or dropping the last reference to it, ends the work.

    Slow work runs in daemon threads, which report by messages, in order.

    Args:
        source: a step, a graph, or a pair of one of these and a plan for it.
        machine: the machine to plan for, or its name; by default the attached GPU, or a V100 where there is none.
        budget: device memory, as in `plan_swaps`; by default the machine's memory if the step needs more, on a GPU
            less what the CUDA context and libraries take, else what the step needs, also after another machine was
            chosen.
        seed: seed of the random choices.
        device: what the step is captured for and run on, `"cpu"` or `"cuda"`; a graph has its own.

    Raises:
        StowageError: the source cannot be shown, or the machine, budget or device is invalid.
    """

    def __init__(
        self, source: Any, *, machine: str | Machine | None = None, budget: str | int | None = None, seed: int = 0,
        device: str = "cpu",
    ) -> None:  # fmt: skip
        machines.check(machine)
        if budget is not None:
            parse_budget(budget, 2**50)
        read = read_source(source)
        self._session_state = SessionState(
            read, seed, machine, budget, sweeping.begin, close_features, read.graph.device if read.graph else device
        )
        self._end = finalize(self, self._session_state.close)
        interrupts.cancel_on_interrupt(self._session_state)
        capturing.begin(self._session_state)

    @property
    def graph(self) -> Graph:
        """The graph; blocks until the capture has ended.

        Raises:
            StowageError: the step cannot be captured, or the session was closed before the capture ended.
        """
        session_state = self._session_state
        session_state.settled.wait()
        if session_state.feasibility is None:
            raise session_state.refusal or StowageError("it was closed before the step was captured; open it again")
        return session_state.feasibility.graph

    @property
    def machine(self) -> Machine:
        """The machine that is planned for.

        Blocks until the capture and a change of the machine have ended, and raises as `graph` does.
        """
        _ = self.graph
        capturing.wait_for_machine(self._session_state)
        assert self._session_state.feasibility is not None
        return self._session_state.feasibility.machine

    @machine.setter
    def machine(self, machine: str | Machine) -> None:
        capturing.change_machine(self._session_state, machine)

    @property
    def budget(self) -> int:
        """The budget in bytes of device memory, which may follow the machine.

        Blocks until the capture and a change of the machine have ended, and raises as `graph` does. Setting one for
        which there is no plan warns, once the step is captured.
        """
        _ = self.graph
        capturing.wait_for_machine(self._session_state)
        return self._session_state.budget_bytes

    @budget.setter
    def budget(self, budget: str | int) -> None:
        problem = planning.set_budget(self._session_state, budget)
        if problem:
            warnings.warn(problem, stacklevel=3)

    @property
    def plan(self) -> SwapPlan | None:
        """The plan that is shown, or None; blocks until the first plan at this budget was found or failed.

        Raises:
            StowageError: as `graph` does.
        """
        _ = self.graph
        self._session_state.planned.wait()
        searching.catch_up(self._session_state)
        return self._session_state.plan

    @plan.setter
    def plan(self, plan: SwapPlan) -> None:
        _ = self.plan
        listing.show_other(self._session_state, plan)

    @property
    def plans(self) -> PlanTable:
        """The list of plans; blocks as `plan` does, and raises as `graph` does."""
        _ = self.plan
        return listing.table(self._session_state)

    @property
    def search(self) -> SwapSearch | None:
        """The search at this budget, or None before one was started; blocks while one is being started."""
        return searching.begun(self._session_state)

    @property
    def partition(self) -> PartitionPlan | None:
        """The partition that is shown, or None before one was found."""
        return partitioning.shown(self._session_state)

    @property
    def run(self) -> Run | None:
        """The last run, or None before one was started."""
        return self._session_state.run

    @property
    def about(self) -> tuple[Step | None, Graph | None]:
        """The step and the graph, each None while there is none."""
        return self._session_state.source.step, self._session_state.graph or self._session_state.source.graph

    def start_search(self, seconds: float | None = searching.LIMIT_SECONDS, method: str | None = None) -> None:
        """Start the search at this budget, or go on with it.

        Blocks until the capture and a change of the machine have ended, then returns at once.

        A search that has paused or was cancelled goes on from where it was, and one that is running is left as it is.
        Another method has a search of its own, to which the one that is running gives way.

        Args:
            seconds: the search pauses after this time; None for no limit.
            method: one of `planner.swap.METHODS`, by default that of the last search, at first `"auto"`.

        Raises:
            StowageError: there is nothing to search for, no such method, a time below 0, the session is closed, or as
                `graph` does.
        """
        _ = self.graph
        check_limits(seconds)
        capturing.wait_for_machine(self._session_state)
        if method is not None:
            searching.choose_method(self._session_state, method, seconds)
        searching.resume(self._session_state, seconds)

    def show_plan(self, plan: int | str) -> PlanRow:
        """Show a plan of the list, with its machine and its budget; blocks until it is shown, and returns its row.

        Args:
            plan: its number, or its name in the list.

        Raises:
            StowageError: there is not exactly one such plan, the session is closed, or as `graph` does.
        """
        _ = self.plan
        return self._row(listing.show(self._session_state, plan))

    def step_plans(self, by: int) -> PlanRow:
        """Show what was shown before (-1) or, after that, what came next (1); as `show_plan` otherwise.

        Args:
            by: -1 or 1.

        Raises:
            StowageError: nothing was, the session is closed, or as `graph` does.
        """
        _ = self.plan
        return self._row(listing.step(self._session_state, by))

    def _row(self, number: int) -> PlanRow:
        """The row of a plan that is in the list."""
        return next(row for row in self.plans if row.number == number)

    def write_plan(self, plan: int | str, name: str | None = None, note: str | None = None) -> None:
        """Set the name or the note of a plan of the list.

        Args:
            plan: its number, or its name in the list.
            name, note: the new words, `""` for none; by default those that it has.

        Raises:
            StowageError: there is not exactly one such plan, the text is too long, the session is closed, or as
                `graph` does.
        """
        _ = self.plan
        listing.write(self._session_state, plan, name, note)

    def compare_plans(self, first: int | str, second: int | str) -> PlanComparison:
        """Compare two plans of the list.

        Args:
            first, second: their numbers, or their names in the list.

        Raises:
            StowageError: there is not exactly one such plan, the two provide for different scratch memory, or as
                `graph` does.
        """
        _ = self.plan
        return listing.compare(self._session_state, first, second)

    def save_plans(self, path: str | Path) -> None:
        """Save the list of plans.

        Raises:
            StowageError: `path` is no path, or the file cannot be written; an existing one is left unchanged.
        """
        require_arguments("save_plans", path=(path, PATH))
        _ = self.plan
        listing.save(self._session_state, path)

    def load_plans(self, path: str | Path) -> int:
        """Add the plans of a file to the list; returns how many were new.

        Raises:
            StowageError: `path` is no path, or the file cannot be read, is of another step, holds a plan that is not
                valid, or one for a machine that is not known; then the list is as it was.
        """
        require_arguments("load_plans", path=(path, PATH))
        _ = self.plan
        return listing.load(self._session_state, path)

    def start_partition(
        self, workers: int | None = None, *, pins: Pins | None = None, memory: str | int | None = None
    ) -> None:
        """Search for a partition; blocks until the capture has ended, then returns at once.

        Args:
            workers: how many there are; by default as many as last time, at first 8.
            pins: by name of a tensor what is fixed at each level: a dimension, `"replicated"`, or None; by default what
                was fixed last.
            memory: what each worker may take: an amount, `"budget"`, or `"none"` for as little as splitting gives; by
                default as last time.

        Raises:
            StowageError: the number of workers is not possible, the session is closed, or as `graph` does.
        """
        _ = self.graph
        partitioning.begin(self._session_state, workers, pins, memory)

    def show_worker(self, worker: int | None) -> None:
        """Show what one worker of the partition does, or the whole step again; returns at once.

        Args:
            worker: which worker; None for the whole step.

        Raises:
            StowageError: there is no partition, or no such worker, or the session is closed.
        """
        worker_views.show(self._session_state, worker)

    def start_run(self, steps: int = running.STEPS, *, check: bool | Literal["first"] = True) -> None:
        """Run the plan that is shown; blocks until there is one, then returns at once.

        Args:
            steps: number of steps.
            check: whether to run eager PyTorch beside every step, or the first two, and to compare all bits.

        Raises:
            StowageError: there is nothing to run, the session is closed, or as `graph` does.
        """
        _ = self.plan
        running.begin(self._session_state, steps, check)

    def messages(self) -> list[Message]:
        """The latest message of every kind, the graph before the messages that refer to it."""
        return self._session_state.message_bus.all()

    def listen(self, listener: Listener, *, replay: bool = False) -> Callable[[], None]:
        """Call a function with every new message, from any thread; returns a function that ends this.

        Args:
            listener: takes a message.
            replay: call it with the latest message of every kind first; no message is missed between the two.
        """
        return self._session_state.message_bus.listen(listener, replay=replay)

    def replay(self, listener: Listener) -> None:
        """Call a function with the latest message of every kind, before any new message is sent."""
        self._session_state.message_bus.replay(listener)

    def request(self, wanted: Mapping[str, Any]) -> None:
        """Carry out a panel's request; a request that cannot be carried out is answered by a notice.

        Args:
            wanted: `{"do": what, ...}`.
        """
        if wanted.get("do") == "ready":  # a view of a closed session still shows its last state
            self._session_state.has_viewers = not self._session_state.jobs.closed
            sweeping.begin(self._session_state)
            return
        carry_out(self._session_state, wanted)

    def suspend(self) -> None:
        """Stop background work if there is no listener left; a later request starts it again."""
        session_state = self._session_state
        with session_state.message_bus.lock:
            if not session_state.message_bus.has_listeners:
                session_state.has_viewers = False
                session_state.jobs.drop("sweep")
                cancel_features(session_state)

    def close(self) -> None:
        """End all work; no thread is left running."""
        self._end()
