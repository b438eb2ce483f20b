"""The state of a session; threads reference it and never the session, so that dropping the session ends them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from time import perf_counter

from planner.errors import StowageError
from planner.graph import Graph
from planner.machine import Machine
from planner.plan import SwapPlan, validate
from planner.run import Run, TorchContext
from planner.shutdown import on_shutdown
from planner.swap import SwapSearch
from widgets.info import Feasibility
from widgets.messages import Message, PlanStatus, budget_message, plan_message, refused_message
from widgets.session.state.jobs import Job, Jobs
from widgets.session.state.message_bus import MessageBus
from widgets.session.state.plan_cache import PlanCache
from widgets.session.state.source import Source


@dataclass(eq=False)
class SessionState:
    """The state of a session; hold `message_bus.turn` to read or change it.

    Args:
        source, seed: what is planned, and the seed of the random choices.
        machine, budget: as requested, later those that are planned for; None where none was requested.
        on_idle: called when a job has ended, to start background work if there is any.

    Attributes:
        graph, ground, shelf: the captured step, its feasibility on the machine, and the plans found so far; None before
            the capture.
        shelves: by machine name, the plans found for the machines that were planned for earlier.
        follows_device: whether the budget changes with the machine, because none was requested.
        plan: the plan that is shown, if it is a plan for the budget, else None.
        bound_seconds, baselines: lower bound on the step time within the budget; seconds by baseline, as far as known.
        search, run: the last ones started.
        surroundings: PyTorch's modes in the creating thread, under which the step is captured and run.
        settled: set when the capture has succeeded or failed; `planned` when the first plan for the budget was found or
            failed.
        refusal: the error of a failed capture.
        has_viewers: whether a view is open, so that background work is worthwhile.
    """

    source: Source
    seed: int
    machine: str | Machine | None
    budget: str | int | None
    on_idle: Callable[[SessionState], None]
    message_bus: MessageBus = field(default_factory=MessageBus)
    graph: Graph | None = None
    feasibility: Feasibility | None = None
    plan_cache: PlanCache | None = None
    plan_caches: dict[str, PlanCache] = field(default_factory=dict)
    plan: SwapPlan | None = None
    bound_seconds: float | None = None
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

    def draw(self, job: Job, plan: SwapPlan, *, placeholder: bool = False, state: str = "planned", doing: str = "",
             sentence: str = "") -> bool:  # fmt: skip
        """Show a plan, and report the state of the budget.

        Args:
            job: the job that found it.
            plan: the plan; valid unless it is a placeholder.
            placeholder: whether it is the captured step, shown because there is no plan.
            state, doing, sentence: fields of the budget message.
        """
        feasibility, plan_cache = self.feasibility, self.plan_cache
        assert feasibility is not None
        assert plan_cache is not None
        began = perf_counter()
        with self.message_bus.lock:
            self.plans += 1
            number, bound = self.plans, self.bound_seconds
        status = PlanStatus(number, plan_cache.summary(plan, bound), placeholder)
        message = plan_message(feasibility.graph, plan, status)
        self.packing_seconds = perf_counter() - began
        with self.message_bus.lock:
            if not job.current:
                return False
            self.plan = None if placeholder else plan
            self.message_bus.publish(message, self.budget_words(state, doing, sentence))
        return True

    def budget_words(self, state: str, doing: str = "", sentence: str = "", machine: str = "") -> Message:
        """The budget message."""
        assert self.feasibility is not None
        budget = self.budget_bytes
        return budget_message(budget, self.feasibility.verdict(budget), state, doing, sentence, machine)

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
                self.message_bus.publish(*filter(None, map(_ended, self.message_bus.all())))
            search, run, self.search, self.run = self.search, self.run, None, None
        if search is not None:
            search.cancel()
        if run is not None:
            run.cancel()
        self.settled.set()
        self.planned.set()


def _ended(message: Message) -> Message | None:
    """The message that reports the end of the work that a message reports as running; None where none is running."""
    content, state = message.content, message.content.get("state")
    if message.kind == "loading":
        return refused_message("Closed", "it was closed before the step was captured; open it again")
    if message.kind == "front" and content["share"] is not None:
        return Message({**content, "doing": "", "share": None}, message.buffers)
    ends = {
        ("search", "running"): ("cancelled", "It was closed while this search went on."),
        ("run", "planning"): ("cancelled", "It was closed while this run went on."),
        ("run", "running"): ("cancelled", "It was closed while this run went on."),
        ("budget", "planning"): ("none", "It was closed before there was a plan."),
    }
    if (message.kind, state) not in ends:
        return None
    ended, sentence = ends[message.kind, str(state)]
    return Message({**content, "state": ended, "doing": "", "sentence": sentence}, message.buffers)


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
