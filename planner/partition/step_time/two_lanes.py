"""A list simulation of one device: a compute lane in fixed order, and a communication lane by priority."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush


@dataclass(frozen=True, slots=True)
class LaneTask:
    """Something that occupies a lane for a while.

    Args:
        seconds: how long.
        after: the numbers of the tasks that must have ended before.
        communicates: whether it runs on the communication lane.
        priority: of those that could run on the communication lane, the one with the least number runs first.
    """

    seconds: float
    after: tuple[int, ...]
    communicates: bool = False
    priority: int = 0


def finish_times(tasks: Sequence[LaneTask]) -> list[float]:
    """When each task ends, in seconds.

    Tasks of the compute lane run in the order given, and the communication lane takes the most urgent task that is
    ready whenever it is free.

    Args:
        tasks: each may depend on any other, without circles.
    """
    waiting = [len(task.after) for task in tasks]
    followers: list[list[int]] = [[] for _ in tasks]
    for number, task in enumerate(tasks):
        for before in task.after:
            followers[before].append(number)
    order = [number for number, task in enumerate(tasks) if not task.communicates]
    ready = [(task.priority, n) for n, task in enumerate(tasks) if task.communicates and not waiting[n]]
    heapify(ready)
    ends = [0.0] * len(tasks)
    running: list[tuple[float, int]] = []
    now, turn = 0.0, 0
    computing = communicating = False
    while True:
        if not computing and turn < len(order) and not waiting[order[turn]]:
            heappush(running, (now + tasks[order[turn]].seconds, order[turn]))
            computing, turn = True, turn + 1
        if not communicating and ready:
            _, number = heappop(ready)
            heappush(running, (now + tasks[number].seconds, number))
            communicating = True
        if not running:
            break
        now, number = heappop(running)
        ends[number] = now
        if tasks[number].communicates:
            communicating = False
        else:
            computing = False
        for follower in followers[number]:
            waiting[follower] -= 1
            if not waiting[follower] and tasks[follower].communicates:
                heappush(ready, (tasks[follower].priority, follower))
    return ends
