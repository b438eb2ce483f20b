"""What stands behind the panels of one graph: what is shown, what is going on, and what may be asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal
from weakref import finalize

from planner.capture import Step
from planner.errors import StowageError
from planner.graph import Graph
from planner.machine.types import Machine
from planner.memory import parse_budget
from planner.plan import SwapPlan
from planner.run import Run
from planner.swap import SwapSearch
from planner.units import format_bytes
from widgets.canvas.columns import Message
from widgets.canvas.state_messages import compare_message, notice_message
from widgets.session import capturing, exporting, interrupts, machines, planning, running, searching, sweeping
from widgets.session.core import Core
from widgets.session.outbox import Listener
from widgets.session.shelf import numbers_of
from widgets.session.source import read_source


class Session:
    """Everything that goes on about one step; dropping the last reference to it, or closing it, ends all of that.

    Whatever takes long happens in daemon threads, which report by messages, in order.

    Args:
        source: a step, a graph, or a pair of one of these and a plan for it.
        machine: to plan for, or its name; without it, the attached GPU, or a V100 where there is none.
        budget: device memory, as in `plan_swaps`; without it, what the machine has if the step needs more, else what
            the step needs, also after another machine was chosen.
        seed: for random choices.

    Raises:
        StowageError: it is nothing that can be shown, or there is no such machine or amount.
    """

    def __init__(
        self, source: Any, *, machine: str | Machine | None = None, budget: str | int | None = None, seed: int = 0
    ) -> None:
        machines.check(machine)
        if budget is not None:
            parse_budget(budget, 2**50)
        self._core = Core(read_source(source), seed, machine, budget, sweeping.begin)
        self._end = finalize(self, self._core.close)
        interrupts.heed(self._core)
        capturing.begin(self._core)

    @property
    def graph(self) -> Graph:
        """The graph; waits for the capture.

        Raises:
            StowageError: the step cannot be captured, or all was closed before it was.
        """
        core = self._core
        core.settled.wait()
        if core.ground is None:
            raise core.refusal or StowageError("it was closed before the step was captured; open it again")
        return core.ground.graph

    @property
    def machine(self) -> Machine:
        """The machine that is planned for; waits for the capture, and raises as `graph` does."""
        _ = self.graph
        assert self._core.ground is not None
        return self._core.ground.machine

    @machine.setter
    def machine(self, machine: str | Machine) -> None:
        capturing.change_machine(self._core, machine)

    @property
    def budget(self) -> int:
        """Bytes of device memory; waits for the capture, and raises as `graph` does."""
        _ = self.graph
        return self._core.budget_bytes

    @budget.setter
    def budget(self, budget: str | int) -> None:
        planning.set_budget(self._core, budget)

    @property
    def plan(self) -> SwapPlan | None:
        """The plan that is drawn, None where there is none; waits for the first one at this budget.

        Raises:
            StowageError: as `graph` does.
        """
        _ = self.graph
        self._core.planned.wait()
        return self._core.plan

    @property
    def search(self) -> SwapSearch | None:
        """The search at this budget, None before there is one; waits for one that is just beginning."""
        return searching.begun(self._core)

    @property
    def run(self) -> Run | None:
        """The last run, None before there is one."""
        return self._core.run

    @property
    def about(self) -> tuple[Step | None, Graph | None]:
        """The step and the graph, as far as there are any by now."""
        return self._core.source.step, self._core.graph or self._core.source.graph

    def start_search(self, seconds: float | None = searching.LIMIT_SECONDS) -> None:
        """Search at this budget, or go on with its search; waits for the capture, and returns at once after that.

        Args:
            seconds: after which it pauses; None for no limit.

        Raises:
            StowageError: there is nothing to search for, it was closed, or as `graph` does.
        """
        _ = self.graph
        searching.resume(self._core, seconds)

    def start_run(self, steps: int = running.STEPS, *, check: bool | Literal["first"] = True) -> None:
        """Run the plan that is drawn; waits for that, and returns at once after that.

        Args:
            steps: how many.
            check: whether to run eager PyTorch beside every step, or the first two, and to compare all bits.

        Raises:
            StowageError: there is nothing to run, it was closed, or as `graph` does.
        """
        _ = self.plan
        running.begin(self._core, steps, check)

    def messages(self) -> list[Message]:
        """What there is to show now, in the order in which it makes sense."""
        return self._core.outbox.all()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have a function called with every message from now on, from any thread; returns what ends that."""
        return self._core.outbox.listen(listener)

    def replay(self, listener: Listener) -> None:
        """Call a function with all messages there are, before anything new is told."""
        self._core.outbox.replay(listener)

    def request(self, wanted: Mapping[str, Any]) -> None:
        """Do what a panel asks for; what cannot be done is told as a notice.

        Args:
            wanted: `{"do": what, ...}`.
        """
        do = _REQUESTS.get(str(wanted.get("do")))
        if do is None:
            return
        try:
            if do is not _awake:  # whoever opens a view of what was closed sees it as it was
                self._core.check_open()
            do(self._core, wanted)
        except StowageError as error:
            self._core.outbox.tell(notice_message(str(error)))
        except (KeyError, TypeError, ValueError, OverflowError):  # not as a panel asks
            self._core.outbox.tell(notice_message(f"nothing was done: {dict(wanted)!r:.200} is no request"))

    def rest(self) -> None:
        """Where nobody listens any more, stop what goes on by itself; whoever asks for it again gets it again."""
        core = self._core
        with core.outbox.turn:
            if not core.outbox.heard:
                core.awake = False
                core.jobs.drop("sweep")
                searching.cancel(core)
                running.cancel(core)

    def close(self) -> None:
        """End everything that goes on; no thread stays behind."""
        self._end()


def _awake(core: Core, _: Mapping[str, Any]) -> None:
    core.awake = not core.jobs.closed
    sweeping.begin(core)


def _take(core: Core, wanted: Mapping[str, Any]) -> None:
    planning.set_budget(core, int(wanted["bytes"]))


def _compare(core: Core, wanted: Mapping[str, Any]) -> None:
    with core.outbox.turn:
        if wanted["bytes"] is None or core.shelf is None:
            core.outbox.tell(compare_message("", None))
            return
        plan = core.shelf.at(int(wanted["bytes"]))
        if plan is None:
            raise StowageError(
                f"no plan is known for {format_bytes(int(wanted['bytes']))}; choose a point of the front"
            )
        core.outbox.tell(compare_message(format_bytes(plan.budget_bytes), numbers_of(core.shelf.ground, plan).said()))


_REQUESTS: Mapping[str, Callable[[Core, Mapping[str, Any]], None]] = {
    "ready": _awake,
    "budget": _take,
    "take": _take,
    "machine": lambda core, wanted: capturing.change_machine(core, str(wanted["name"])),
    "search": lambda core, _: searching.begin(core),
    "cancel": lambda core, _: searching.cancel(core),
    "resume": lambda core, _: searching.resume(core),
    "compare": _compare,
    "run": lambda core, wanted: running.begin(
        core, int(wanted.get("steps", running.STEPS)), bool(wanted.get("check", True))
    ),
    "cancel_run": lambda core, _: running.cancel(core),
    "export": lambda core, wanted: exporting.begin(core, str(wanted.get("format")), wanted.get("view")),
    "cancel_loading": lambda core, _: capturing.cancel(core),
}
