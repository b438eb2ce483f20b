"""The session behind the panels of one graph: its state, its background work, and the requests it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal
from weakref import finalize

from planner.errors import StowageError
from planner.graph import Graph
from planner.machine import Machine
from planner.memory import parse_budget
from planner.plan import SwapPlan
from planner.run import Run
from planner.step import Step
from planner.swap import SwapSearch
from widgets.messages import Message, notice_message
from widgets.session import interrupts
from widgets.session.registry import features, find_request
from widgets.session.state import machines
from widgets.session.state.message_bus import Listener
from widgets.session.state.session_state import SessionState
from widgets.session.state.source import read_source
from widgets.session.tasks import capturing, planning, running, searching, sweeping


class Session:
    """The background work for one step; closing the session, or dropping the last reference to it, ends the work.

    Slow work runs in daemon threads, which report by messages, in order.

    Args:
        source: a step, a graph, or a pair of one of these and a plan for it.
        machine: the machine to plan for, or its name; by default the attached GPU, or a V100 where there is none.
        budget: device memory, as in `plan_swaps`; by default the machine's memory if the step needs more, else what
            the step needs, also after another machine was chosen.
        seed: seed of the random choices.

    Raises:
        StowageError: the source cannot be shown, or the machine or budget is invalid.
    """

    def __init__(
        self, source: Any, *, machine: str | Machine | None = None, budget: str | int | None = None, seed: int = 0
    ) -> None:
        machines.check(machine)
        if budget is not None:
            parse_budget(budget, 2**50)
        self._core = SessionState(read_source(source), seed, machine, budget, sweeping.begin, _close_features)
        self._end = finalize(self, self._core.close)
        interrupts.heed(self._core)
        capturing.begin(self._core)

    @property
    def graph(self) -> Graph:
        """The graph; blocks until the capture has ended.

        Raises:
            StowageError: the step cannot be captured, or the session was closed before the capture ended.
        """
        core = self._core
        core.settled.wait()
        if core.feasibility is None:
            raise core.refusal or StowageError("it was closed before the step was captured; open it again")
        return core.feasibility.graph

    @property
    def machine(self) -> Machine:
        """The machine that is planned for; blocks until the capture has ended, and raises as `graph` does."""
        _ = self.graph
        assert self._core.feasibility is not None
        return self._core.feasibility.machine

    @machine.setter
    def machine(self, machine: str | Machine) -> None:
        capturing.change_machine(self._core, machine)

    @property
    def budget(self) -> int:
        """The budget in bytes of device memory; blocks until the capture has ended, and raises as `graph` does."""
        _ = self.graph
        return self._core.budget_bytes

    @budget.setter
    def budget(self, budget: str | int) -> None:
        planning.set_budget(self._core, budget)

    @property
    def plan(self) -> SwapPlan | None:
        """The plan that is shown, or None; blocks until the first plan at this budget was found or failed.

        Raises:
            StowageError: as `graph` does.
        """
        _ = self.graph
        self._core.planned.wait()
        return self._core.plan

    @property
    def search(self) -> SwapSearch | None:
        """The search at this budget, or None before one was started; blocks while one is being started."""
        return searching.begun(self._core)

    @property
    def run(self) -> Run | None:
        """The last run, or None before one was started."""
        return self._core.run

    @property
    def about(self) -> tuple[Step | None, Graph | None]:
        """The step and the graph, each None while there is none."""
        return self._core.source.step, self._core.graph or self._core.source.graph

    def start_search(self, seconds: float | None = searching.LIMIT_SECONDS) -> None:
        """Start or resume the search at this budget; blocks until the capture has ended, then returns at once.

        Args:
            seconds: the search pauses after this time; None for no limit.

        Raises:
            StowageError: there is nothing to search for, the session is closed, or as `graph` does.
        """
        _ = self.graph
        searching.resume(self._core, seconds)

    def start_run(self, steps: int = running.STEPS, *, check: bool | Literal["first"] = True) -> None:
        """Run the plan that is shown; blocks until there is one, then returns at once.

        Args:
            steps: number of steps.
            check: whether to run eager PyTorch beside every step, or the first two, and to compare all bits.

        Raises:
            StowageError: there is nothing to run, the session is closed, or as `graph` does.
        """
        _ = self.plan
        running.begin(self._core, steps, check)

    def messages(self) -> list[Message]:
        """The latest message of every kind, the graph before the messages that refer to it."""
        return self._core.message_bus.all()

    def listen(self, listener: Listener, *, replay: bool = False) -> Callable[[], None]:
        """Call a function with every new message, from any thread; returns a function that ends this.

        Args:
            listener: takes a message.
            replay: call it with the latest message of every kind first; no message is missed between the two.
        """
        return self._core.message_bus.listen(listener, replay=replay)

    def replay(self, listener: Listener) -> None:
        """Call a function with the latest message of every kind, before any new message is sent."""
        self._core.message_bus.replay(listener)

    def request(self, wanted: Mapping[str, Any]) -> None:
        """Carry out a panel's request; a request that cannot be carried out is answered by a notice.

        Args:
            wanted: `{"do": what, ...}`.
        """
        if wanted.get("do") == "ready":  # a view of a closed session still shows its last state
            self._core.has_viewers = not self._core.jobs.closed
            sweeping.begin(self._core)
            return
        do = find_request(str(wanted.get("do")))
        if do is None:
            return
        try:
            self._core.check_open()
            do(self._core, wanted)
        except StowageError as error:
            self._core.message_bus.publish(notice_message(str(error)))
        except (KeyError, TypeError, ValueError, OverflowError):  # a malformed request
            self._core.message_bus.publish(notice_message(f"nothing was done: {dict(wanted)!r:.200} is no request"))

    def suspend(self) -> None:
        """Stop background work if there is no listener left; a later request starts it again."""
        core = self._core
        with core.message_bus.lock:
            if not core.message_bus.has_listeners:
                core.has_viewers = False
                core.jobs.drop("sweep")
                for feature in features():
                    feature.cancel(core)

    def close(self) -> None:
        """End all work; no thread is left running."""
        self._end()


def _close_features(core: SessionState) -> None:
    for feature in features():
        feature.close(core)
