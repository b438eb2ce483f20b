"""Search for a partition over workers, pin splits and search again, and show which worker has which block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planner.errors import StowageError
from planner.graph import Graph
from planner.memory import parse_budget, step_peak
from widgets.info import get_tensor_blocks
from widgets.messages import MessageKind, blocks_message, partition_at_rest, partition_message
from widgets.session.partition.partition_state import PartitionState, Pins
from widgets.session.partition.worker_state import leave
from widgets.session.state.feature import Feature
from widgets.session.state.jobs import Job
from widgets.session.state.session_state import SessionState, sentence_of

if TYPE_CHECKING:
    from planner.partition import PartitionPlan, PartitionSearch

LIMIT_SECONDS = 20.0
#: What each worker may take: as little as splitting gives, or the budget.
NO_LIMIT, BUDGET = "none", "budget"
_STOPPED = ("cancelled", "paused")
_LOOK_SECONDS = 0.15


def begin(
    session_state: SessionState,
    workers: int | None = None,
    pins: Pins | None = None,
    memory: str | int | None = None,
) -> None:
    """Search for the partition that moves the fewest bytes; a search that is running is replaced.

    Args:
        session_state: the session state.
        workers: how many there are; by default as many as last time.
        pins: what is fixed; by default what was fixed last, if that was for as many workers.
        memory: what each worker may take: an amount, `"budget"`, or `"none"` for as little as splitting gives; by
            default as last time.

    Raises:
        StowageError: there is no graph yet, a number is not possible, or the session is closed.
    """
    with session_state.message_bus.lock:
        session_state.check_open()
        graph, known = _graph(session_state), _known(session_state)
        if memory is not None:
            known.memory = _limit(session_state, graph, memory)
        known.choose(known.workers if workers is None else workers, pins)
        session_state.jobs.start("partition", lambda job: _search(session_state, job))
        _publish(session_state, "running", "finding how ops can be split" if known.search is None else "searching")


def _limit(session_state: SessionState, graph: Graph, memory: str | int) -> int | None:
    if memory == NO_LIMIT:
        return None
    return session_state.budget_bytes if memory == BUDGET else parse_budget(memory, step_peak(graph), "memory limit")


def resume(session_state: SessionState) -> None:
    """Go on with the search where it stopped, or search again if there is none to go on with.

    Raises:
        StowageError: as `begin` does.
    """
    with session_state.message_bus.lock:
        session_state.check_open()
        search = _known(session_state).search
        if search is None or search.progress.state not in _STOPPED or not search.progress.evaluations:
            begin(session_state)
            return
        session_state.jobs.start("partition", lambda job: _search(session_state, job, search))
        _publish(session_state, "running", "searching")


def cancel(session_state: SessionState) -> None:
    """Stop the search; what was found is kept."""
    with session_state.message_bus.lock:
        search = _known(session_state).search
        if session_state.jobs.cancel("partition"):
            if search is not None:
                search.cancel()
            _publish(session_state, "cancelled", sentence="Cancelled; what was found is kept.")


def shown(session_state: SessionState) -> PartitionPlan | None:
    """The partition that is shown, or None before there is any."""
    with session_state.message_bus.lock:
        return _known(session_state).plan


def _begin(session_state: SessionState, wanted: Mapping[str, Any]) -> None:
    memory = wanted.get("memory")
    if not (memory is None or type(memory) in (int, str)):
        raise ValueError(memory)
    begin(session_state, int(wanted["workers"]), memory=memory)


def _pin(session_state: SessionState, wanted: Mapping[str, Any]) -> None:
    """Fix the split of a row of tensors at a level, or leave it to the search again."""
    row, level, value = int(wanted["row"]), int(wanted["level"]), wanted["value"]
    if not (value is None or value == "replicated" or type(value) is int):
        raise ValueError(value)
    with session_state.message_bus.lock:
        known = _known(session_state)
        begin(session_state, pins=known.pinned(_graph(session_state), row, level, value))


def _release(session_state: SessionState, _: Mapping[str, Any]) -> None:
    begin(session_state, pins={})


def _show(session_state: SessionState, wanted: Mapping[str, Any]) -> None:
    """Show a partition that was found earlier; what was pinned for it is pinned again."""
    with session_state.message_bus.lock:
        known = _known(session_state)
        if not known.show(int(wanted["which"])):
            raise StowageError(f"there is no partition {wanted['which']}; choose one of the list")
        session_state.jobs.drop("partition")
        if known.search is not None:
            known.search.cancel()
        leave(session_state, known.views)
        _publish(session_state, "done")
        _publish_blocks(session_state)


def _blocks(session_state: SessionState, wanted: Mapping[str, Any]) -> None:
    """Show the blocks of the tensor in a storage, now and in every partition that is shown later."""
    with session_state.message_bus.lock:
        storage = int(wanted["storage"])
        if not 0 <= storage < len(_graph(session_state).storages):
            raise ValueError(storage)
        _known(session_state).storage = storage
        _publish_blocks(session_state)


def _search(session_state: SessionState, job: Job, stopped: PartitionSearch | None = None) -> None:
    known, graph = _known(session_state), _graph(session_state)
    least = None
    try:
        if stopped is None:
            search = _started(session_state, job, graph)
        else:
            search = stopped
            search.resume(time_limit=LIMIT_SECONDS)
        job.under_way.set()
        _follow(session_state, job, search)
        state = search.progress.state
        if state == "failed" or search.best is None:
            least = search.least_memory if state == "done" else None
            search.wait(progress=False)  # raises what went wrong
        with session_state.message_bus.lock:
            if job.current and not job.stop.requested:
                _publish(session_state, state, sentence=known.sentence(state))
    except Exception as error:
        with session_state.message_bus.lock:
            if job.current and not job.stop.requested:
                _publish(session_state, "failed", sentence=sentence_of(error), least_bytes=least)
    session_state.on_idle(session_state)


def _started(session_state: SessionState, job: Job, graph: Graph) -> PartitionSearch:
    """A search that begins with what an earlier one for as many workers has found out about the graph."""
    from planner.partition import search_partition

    with session_state.message_bus.lock:
        known = _known(session_state)
        workers, pins, memory, earlier = known.workers, dict(known.pins), known.memory, known.search
    if earlier is not None and earlier.progress.evaluations:
        earlier.cancel()
        if memory != earlier.problem.memory:
            earlier = earlier.with_memory(memory, time_limit=0.0)
        search = earlier.with_pins(pins, time_limit=LIMIT_SECONDS)
    else:
        search = search_partition(
            graph, workers, memory=memory, pins=pins, seed=session_state.seed, time_limit=LIMIT_SECONDS
        )
    with session_state.message_bus.lock:
        if job.current and known.workers == workers:
            known.search = search
        if job.stop.requested:
            search.cancel()
    return search


def _follow(session_state: SessionState, job: Job, search: PartitionSearch) -> None:
    """Report progress and every better partition until the search ends or the job is stopped."""
    known, graph, drawn = _known(session_state), _graph(session_state), None
    while True:
        running = search.progress.state == "running"
        best = search.best
        if best is not None and best is not drawn:
            drawn = best
            found = known.describe(graph, best)
            with session_state.message_bus.lock:
                if not job.current:
                    return
                known.add(best, found)
                leave(session_state, known.views)
                _publish_blocks(session_state)
        with session_state.message_bus.lock:
            if not job.current or job.stop.requested or not running:
                return
            _publish(session_state, "running", search.progress.doing)
        job.stop.wait(_LOOK_SECONDS)


def _publish(
    session_state: SessionState, state: str, doing: str = "", sentence: str = "", least_bytes: int | None = None
) -> None:
    known, job = _known(session_state), session_state.jobs.running_job("partition")
    share = min(1.0, job.seconds / LIMIT_SECONDS) if state == "running" and known.search and job else None
    resumable = state in _STOPPED and known.search is not None and known.search.progress.evaluations > 0
    session_state.message_bus.publish(
        partition_message(
            state, known.workers, doing=doing, share=share, shown=known.shown, found=known.listed,
            pins=known.pins_by_row(_graph(session_state)), sentence=sentence, limit_bytes=known.memory,
            least_bytes=least_bytes, resumable=resumable,
        )
    )  # fmt: skip


def _publish_blocks(session_state: SessionState) -> None:
    known, graph = _known(session_state), _graph(session_state)
    if known.shown is None or known.plan is None:
        return
    if known.storage < 0:
        known.storage = known.largest()
    tensor = next((each for each in graph.tensors if each.storage == known.storage and each.base < 0), None)
    if tensor is not None:
        blocks = get_tensor_blocks(graph, known.plan, tensor.name)
        session_state.message_bus.publish(blocks_message(known.shown.number, known.storage, blocks))


def _graph(session_state: SessionState) -> Graph:
    if session_state.feasibility is None:
        raise StowageError("there is nothing to split yet: wait until the step is captured")
    return session_state.feasibility.graph


def _known(session_state: SessionState) -> PartitionState:
    return FEATURE.of(session_state)


def _close(session_state: SessionState) -> None:
    with session_state.message_bus.lock:
        known = _known(session_state)
        search, known.search = known.search, None
    if search is not None:
        search.cancel()


FEATURE = Feature[PartitionState](
    "partition",
    kinds=(MessageKind("partition", at_rest=partition_at_rest), MessageKind("blocks")),
    requests={
        "partition": _begin,
        "resume_partition": lambda session_state, _: resume(session_state),
        "cancel_partition": lambda session_state, _: cancel(session_state),
        "pin": _pin,
        "release": _release,
        "show_partition": _show,
        "blocks": _blocks,
    },
    jobs=("partition",),
    cancel=cancel,
    close=_close,
    state=PartitionState,
)
