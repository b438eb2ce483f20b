"""Any spread of a storage is brought to any other, and nobody receives what it has."""

from itertools import product
from math import prod

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lockstep import exchange, ready

from planner.partition.workers.events.worker_events import WorkerEvents
from planner.partition.workers.tensors.redistribute import redistribute
from planner.partition.workers.tensors.spreads import Cut, Whole, chunks, refined

MESHES = [(2,), (3,), (2, 2), (2, 3), (3, 2), (2, 2, 2)]


def places(mesh):
    return list(product(*(range(size) for size in mesh)))


@st.composite
def cases(draw):
    mesh = draw(st.sampled_from(MESHES))
    sizes = draw(st.lists(st.integers(1, 8), min_size=1, max_size=3))
    elements = prod(sizes)

    def spread():
        levels = []
        for _ in mesh:
            place = draw(st.integers(-2, len(sizes) - 1))
            if place == -1:
                levels.append(Whole.SUMMED)
            elif place == -2:
                levels.append(Whole.EVERYWHERE)
            else:
                levels.append(Cut(prod(sizes[place + 1 :]), sizes[place]))
        found = refined(tuple(levels), mesh)
        every = [chunks(found, mesh, place) for place in places(mesh)]
        if any(last <= first for own in every for first, last in own.values()):
            return (Whole.EVERYWHERE,) * len(mesh)
        return found

    return mesh, elements, spread(), spread()


def owned(elements, spread, mesh, place):
    """Which elements a worker has, address by address."""
    address, mine = torch.arange(elements), torch.ones(elements, dtype=torch.bool)
    for cut, (first, last) in chunks(spread, mesh, place).items():
        digit = address // cut.stride % cut.size
        mine &= (digit >= first) & (digit < last)
    return mine


def summand_of(place, spread):
    return tuple(number for number, level in zip(place, spread, strict=True) if level is Whole.SUMMED)


@settings(max_examples=300, deadline=None)
@given(cases())
def test_every_worker_gets_its_part(case):
    mesh, elements, have, want = case
    whole = torch.arange(1, elements + 1, dtype=torch.float64)
    summands = list(product(*(range(size) for size, level in zip(mesh, have, strict=True) if level is Whole.SUMMED)))
    parts = {summand: torch.randint(-9, 9, (elements,)).double() for summand in summands}
    parts[summands[0]] += whole - sum(parts.values())
    workers = []
    for place in places(mesh):
        calls = WorkerEvents(mesh, place)
        mine = parts[summand_of(place, have)][owned(elements, have, mesh, place)]
        storage = calls.storage(mine.numel() * 8)
        found = redistribute(calls, storage, torch.float64, elements, have, want)
        workers.append(run(calls, {storage: mine}, found))
    results = together(workers, mesh)
    for place in places(mesh):
        alike = [
            result for result, other in zip(results, places(mesh), strict=True)
            if all(a == b or level is Whole.SUMMED for a, b, level in zip(place, other, want, strict=True))
        ]  # fmt: skip
        assert torch.equal(sum(alike), whole[owned(elements, want, mesh, place)])


def run(calls, memory, found):
    """The calls of one worker, up to each collective; at last the contents of a storage."""

    def tensor(layout):
        flat = memory.setdefault(layout.storage, torch.full((calls.storage_bytes[layout.storage] // 8,), torch.nan))
        return flat.as_strided(layout.shape, layout.strides, layout.offset)

    def filled(value):
        if hasattr(value, "strides"):
            return tensor(value)
        return [filled(item) for item in value] if isinstance(value, list | tuple) else value

    for event in calls.events:
        args = [
            filled(value) if index != 1 or not is_collective(event) else None for index, value in enumerate(event.args)
        ]
        made = (yield event.target, args) if is_collective(event) else event.target(*args, **event.kwargs)
        (result,) = event.results
        tensor(result).copy_(made)
    yield {"found": memory[found]}


def is_collective(event):
    return event.target.namespace == "stowage"


def together(workers, mesh):
    asked = [next(worker) for worker in workers]
    while not all(isinstance(request, dict) for request in asked):
        group = ready(asked, places(mesh))
        answers = exchange([asked[worker] for worker in group])
        for worker, answer in zip(group, answers, strict=True):
            asked[worker] = workers[worker].send(answer)
    return [request["found"] for request in asked]
