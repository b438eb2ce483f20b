"""What a session knows and what is at work in it; threads hold this and never the session, whose end ends them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from time import perf_counter

from planner.ending import at_end
from planner.errors import StowageError
from planner.graph import Graph
from planner.machine.types import Machine
from planner.plan import SwapPlan, validate
from planner.run import Run
from planner.run.surroundings import Surroundings
from planner.swap import SwapSearch
from widgets.canvas.columns import Message
from widgets.canvas.plan_message import Standing, plan_message
from widgets.canvas.state_messages import budget_message, refused_message
from widgets.session.ground import Ground
from widgets.session.jobs import Job, Jobs
from widgets.session.outbox import Outbox
from widgets.session.shelf import Shelf
from widgets.session.source import Source


@dataclass(eq=False)
class Core:
    """All that is known; read and changed with `outbox.turn` held.

    Args:
        source, seed: what it is about, and for random choices.
        machine, budget: as asked for, and then those that are planned for; None where nothing was asked.
        idle: called when something has ended, to see whether there is anything to do unasked.

    Attributes:
        graph, ground, shelf: once the step is captured; the plans found so far.
        shelves: by machine, the plans found for those that were planned for before.
        follows_device: whether the budget goes with the machine, since nobody has asked for another.
        plan: what is drawn, as long as it is a plan for the budget.
        bound_seconds, baselines: no plan within the budget is faster; seconds by baseline, as far as known.
        search, run: the last ones begun.
        surroundings: PyTorch's modes in the thread that made this, under which the step is captured and run.
        settled: set when there is a graph, or never will be; `planned` when the budget's first plan is there or not.
        refusal: why there is no graph.
        awake: whether anybody looks on, so that it is worth it to go on by oneself.
    """

    source: Source
    seed: int
    machine: str | Machine | None
    budget: str | int | None
    idle: Callable[[Core], None]
    outbox: Outbox = field(default_factory=Outbox)
    graph: Graph | None = None
    ground: Ground | None = None
    shelf: Shelf | None = None
    shelves: dict[str, Shelf] = field(default_factory=dict)
    plan: SwapPlan | None = None
    bound_seconds: float | None = None
    baselines: dict[str, float | None] = field(default_factory=dict)
    search: SwapSearch | None = None
    search_limit: float | None = None
    run: Run | None = None
    surroundings: Surroundings = field(default_factory=Surroundings)
    settled: Event = field(default_factory=Event)
    planned: Event = field(default_factory=Event)
    refusal: StowageError | None = None
    awake: bool = False
    plans: int = 0
    packing_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.jobs = Jobs(self.outbox.turn)
        self.follows_device = self.budget is None and self.source.plan is None
        at_end(self.close)

    def report(self, job: Job, *messages: Message) -> bool:
        """Tell what a job has to say, unless another took its place; returns whether it was told."""
        with self.outbox.turn:
            if job.current:
                self.outbox.tell(*messages)
            return job.current

    def draw(self, job: Job, plan: SwapPlan, *, stand_in: bool = False, state: str = "planned", doing: str = "",
             sentence: str = "") -> bool:  # fmt: skip
        """Make a plan the one that is drawn, and say how things stand with the budget.

        Args:
            job: that found it.
            plan: valid, if it is no stand-in.
            stand_in: whether it is the captured step where there is no plan.
            state, doing, sentence: of the budget.
        """
        ground = self.ground
        assert ground is not None
        began = perf_counter()
        with self.outbox.turn:
            self.plans += 1
            number, bound = self.plans, self.bound_seconds
        standing = Standing(number, ground.ideal_seconds, bound, True, stand_in)
        message = plan_message(ground.graph, plan, standing)
        self.packing_seconds = perf_counter() - began
        with self.outbox.turn:
            if not job.current:
                return False
            self.plan = None if stand_in else plan
            self.outbox.tell(message, self.budget_words(state, doing, sentence))
        return True

    def budget_words(self, state: str, doing: str = "", sentence: str = "", machine: str = "") -> Message:
        """The message on the budget."""
        assert self.ground is not None
        budget = self.budget_bytes
        return budget_message(budget, self.ground.verdict(budget), state, doing, sentence, machine)

    @property
    def budget_bytes(self) -> int:
        """The budget, once it is a number."""
        assert isinstance(self.budget, int)
        return self.budget

    def check_open(self) -> None:
        """Refuse to begin anything once all is closed.

        Raises:
            StowageError: it is.
        """
        if self.jobs.closed:
            raise StowageError("this was closed, and nothing begins in it any more: make another one for the same step")

    def close(self) -> None:
        """End everything, and say of what goes on that it ended."""
        with self.outbox.turn:
            if not self.jobs.closed:
                self.jobs.close()
                self.outbox.tell(*filter(None, map(_ended, self.outbox.all())))
            search, run, self.search, self.run = self.search, self.run, None, None
        if search is not None:
            search.cancel()
        if run is not None:
            run.cancel()
        self.settled.set()
        self.planned.set()


def _ended(message: Message) -> Message | None:
    """What to say at the end of what a message says is going on; None where nothing is."""
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
    """What the validator says of a plan."""
    return validate(plan, graph.with_workspaces(dict(plan.workspaces)))


def sentence_of(error: BaseException) -> str:
    """What to say of an error: its own sentence, or which one it is where nobody foresaw it."""
    if isinstance(error, StowageError):
        return str(error)
    try:
        line = str(error).strip().partition("\n")[0]
    except Exception:  # errors are anybody's code
        line = ""
    return f"{type(error).__name__}: {line}" if line else type(error).__name__
