"""The state of a session; threads reference it and never the session, so that dropping the session ends them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from time import perf_counter
from typing import Any

from planner.errors import StowageError
from planner.graph import Graph
from planner.machine import Machine
from planner.plan import SwapPlan, validate
from planner.run import Run, TorchContext
from planner.shutdown import on_shutdown
from planner.swap import DEFAULT_METHOD, RECOMPUTING_METHODS, SwapSearch
from widgets.info import Feasibility
from widgets.messages import Message, PlanStatus, at_rest, budget_message, plan_message, plans_message
from widgets.session.state.jobs import Job, Jobs
from widgets.session.state.message_bus import MessageBus
from widgets.session.state.plan_cache import PlanCache
from widgets.session.state.plan_list import PlanList
from widgets.session.state.plan_table import PlanRow
from widgets.session.state.source import Source


@dataclass(eq=False)
class SessionState:
    """The state of a session; hold `message_bus.lock` to read or change it.

    Args:
        source, seed: what is planned, and the seed of the random choices.
        machine, budget: as requested, later those that are planned for; None where none was requested.
        device: the type of device that the step is captured for and run on.
        on_idle: called when a job has ended, to start background work if there is any.
        on_close: called once all jobs are dropped, to end what features still hold.

    Attributes:
        graph, feasibility, plan_cache: the captured step, its feasibility on the machine, and the plans found so far;
            None before the capture.
        plan_caches: by machine name, the plans found for the machines that were planned for earlier.
        follows_device: whether the budget changes with the machine, because none was requested.
        plan: the plan that is shown, if it is a plan for the budget, else None.
        plan_list: every plan that was shown, for any machine and budget.
        without_plan: whether the captured step is shown because there is no plan for the budget.
        chosen: whether the plan that is shown was chosen from that list, so that only a search may replace it.
        method: of the searches, one of `planner.swap.METHODS`.
        bounds: lower bounds on the step time within the budget, of plans that run each op once and of all plans; None
            while they are unknown.
        baselines: seconds by baseline, as far as known.
        search, run: the last ones started.
        torch_context: PyTorch's modes in the creating thread, under which the step is captured and run.
        settled: set when the capture has succeeded or failed; `planned` when the first plan for the budget was found or
            failed.
        refusal: the error of a failed capture.
        has_viewers: whether a view is open, so that background work is worthwhile.
        remembered: by the name of a feature, what it remembers.
    """

    source: Source
    seed: int
    machine: str | Machine | None
    budget: str | int | None
    on_idle: Callable[[SessionState], None]
    on_close: Callable[[SessionState], None]
    device: str = "cpu"
    message_bus: MessageBus = field(default_factory=MessageBus)
    graph: Graph | None = None
    feasibility: Feasibility | None = None
    plan_cache: PlanCache | None = None
    plan_caches: dict[str, PlanCache] = field(default_factory=dict)
    plan: SwapPlan | None = None
    plan_list: PlanList = field(default_factory=PlanList)
    without_plan: bool = False
    chosen: bool = False
    method: str = DEFAULT_METHOD
    bounds: tuple[float, float] | None = None
    baselines: dict[str, float | None] = field(default_factory=dict)
    search: SwapSearch | None = None
    search_limit: float | None = None
    run: Run | None = None
    torch_context: TorchContext = field(default_factory=TorchContext)
    settled: Event = field(default_factory=Event)
    planned: Event = field(default_factory=Event)
    refusal: StowageError | None = None
    has_viewers: bool = False
    plans: int = 0
    packing_seconds: float = 0.0
    remembered: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.jobs = Jobs(self.message_bus.lock)
        self.follows_device = self.budget is None and self.source.plan is None
        on_shutdown(self.close)

    def report(self, job: Job, *messages: Message) -> bool:
        """Send a job's messages unless the job was replaced; returns whether they were sent."""
        with self.message_bus.lock:
            if job.current:
                self.message_bus.publish(*messages)
            return job.current

    def draw(self, job: Job, plan: SwapPlan, *, placeholder: bool = False, unasked: bool = False,
             searched: bool = False, state: str = "planned", doing: str = "", sentence: str = "") -> bool:  # fmt: skip
        """Show a plan, and report the state of the budget.

        Args:
            job: the job that found it.
            plan: the plan; valid unless it is a placeholder.
            placeholder: whether it is the captured step, shown because there is no plan.
            unasked: whether it takes the place of a slower plan though nobody asked for another.
            searched: whether it is the best so far of the search at the current budget.
            state, doing, sentence: fields of the budget message.
        """
        feasibility, plan_cache = self.feasibility, self.plan_cache
        assert feasibility is not None
        assert plan_cache is not None
        began = perf_counter()
        with self.message_bus.lock:
            self.plans += 1
            number, bounds = self.plans, self.bounds
            bound = None if bounds is None else bounds[len(plan.order) > len(feasibility.graph.ops)]
        status = PlanStatus(number, plan_cache.summary(plan, bound), placeholder)
        message = plan_message(feasibility.graph, plan, status)
        self.packing_seconds = perf_counter() - began
        with self.message_bus.lock:
            if not job.current:
                return False
            if self.plan is plan:  # another thread was faster
                return True
            self.plan, self.without_plan = None if placeholder else plan, placeholder
            if searched:
                self.plan_list.record_best(plan, plan_cache, self.method)
            if not placeholder:
                self.plan_list.record(plan, plan_cache, job, self.follows_device, unasked=unasked)
            self.message_bus.publish(message, self.plans_words(), self.budget_words(state, doing, sentence))
        return True

    def budget_words(self, state: str, doing: str = "", sentence: str = "", machine: str = "") -> Message:
        """The budget message."""
        assert self.feasibility is not None
        budget = self.budget_bytes
        return budget_message(budget, self.feasibility.verdict(budget), state, doing, sentence, machine)

    def plans_words(self) -> Message:
        """The message with the list of plans."""
        table, listed = self.plan_list.table(self.plan), self.plan_list
        undo = listed.can_step(-1) or (self.without_plan and listed.view is not None)
        return plans_message([_fields(row) for row in table], table.dropped, undo=undo, redo=listed.can_step(1))

    def take_over(self, search: SwapSearch) -> None:
        """Take over what a search at the current budget knows of bounds and baselines."""
        progress = search.progress
        once = max(progress.bound_seconds, self.bounds[0] if self.bounds else 0.0)
        self.bounds, self.baselines = (once, progress.recomputing_bound_seconds), search.baselines

    @property
    def bound_seconds(self) -> float | None:
        """Lower bound on the step time of all plans that the method may find within the budget, as far as known."""
        return None if self.bounds is None else self.bounds[self.method in RECOMPUTING_METHODS]

    @property
    def budget_bytes(self) -> int:
        """The budget in bytes; only once it is a number."""
        assert isinstance(self.budget, int)
        return self.budget

    def check_open(self) -> None:
        """Refuse to start anything once the session is closed.

        Raises:
            StowageError: the session is closed.
        """
        if self.jobs.closed:
            raise StowageError("this was closed, and nothing begins in it any more: make another one for the same step")

    def close(self) -> None:
        """End all work, and report it as ended."""
        with self.message_bus.lock:
            if not self.jobs.closed:
                self.jobs.close()
                sent = self.message_bus.all()
                rested = zip(sent, at_rest(sent, "closed"), strict=True)
                self.message_bus.publish(*(after for before, after in rested if after is not before))
        self.on_close(self)
        self.settled.set()
        self.planned.set()


def _fields(row: PlanRow) -> dict[str, Any]:
    """A row of the list of plans for the page."""
    return {
        "number": row.number, "name": row.name, "machine": row.machine, "budget_bytes": row.budget_bytes,
        "step_seconds": row.step_seconds, "percent_of_ideal": row.percent_of_ideal, "bytes_moved": row.bytes_moved,
        "recompute_seconds": row.recompute_seconds, "method": row.method, "note": row.note, "best": row.best,
        "shown": row.shown,
    }  # fmt: skip


def problems_of(plan: SwapPlan, graph: Graph) -> list[str]:
    """The problems that the validator finds in a plan."""
    return validate(plan, graph.with_workspaces(dict(plan.workspaces)))


def sentence_of(error: BaseException) -> str:
    """The text shown for an error: its own sentence, or its type and first line if it is unexpected."""
    if isinstance(error, StowageError):
        return str(error)
    try:
        line = str(error).strip().partition("\n")[0]
    except Exception:  # an error's text may be computed by foreign code
        line = ""
    return f"{type(error).__name__}: {line}" if line else type(error).__name__
