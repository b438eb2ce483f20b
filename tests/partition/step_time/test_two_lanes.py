"""The list simulation: compute in order, communication by urgency."""

import random
from itertools import pairwise

from planner.partition.step_time.two_lanes import LaneTask, finish_times


def compute(seconds, *after):
    return LaneTask(seconds, after)


def send(seconds, *after, priority=0):
    return LaneTask(seconds, after, communicates=True, priority=priority)


def test_communication_runs_behind_compute():
    tasks = [compute(2), send(3, 0), compute(4), compute(1, 1)]
    assert finish_times(tasks) == [2, 5, 6, 7]


def test_compute_waits_for_what_it_needs_even_if_a_later_op_could_run():
    tasks = [send(5), compute(1, 0), compute(1)]
    assert finish_times(tasks) == [5, 6, 7]


def test_the_most_urgent_of_what_is_ready_is_sent_first():
    tasks = [compute(1), send(2, 0, priority=9), send(2, 0, priority=1), compute(1, 2), compute(1, 1)]
    assert finish_times(tasks) == [1, 5, 3, 4, 6]
    assert finish_times([send(4, priority=9), compute(1), send(1, 1, priority=0)]) == [4, 1, 5]  # nothing is cut short


def test_nothing_takes_no_time():
    assert finish_times([]) == []


def test_no_lane_does_two_things_at_once_and_nothing_starts_too_early():
    rng = random.Random(7)
    for _ in range(200):
        tasks = []
        for number in range(rng.randint(1, 25)):
            after = tuple(rng.sample(range(number), min(number, rng.randint(0, 3))))
            make = send if rng.random() < 0.5 else compute
            tasks.append(make(rng.choice([0.5, 1, 2, 3]), *after))
        ends = finish_times(tasks)
        starts = [end - task.seconds for end, task in zip(ends, tasks, strict=True)]
        for task, start in zip(tasks, starts, strict=True):
            assert all(ends[before] <= start for before in task.after)
        for lane in (False, True):
            busy = sorted((s, e) for s, e, t in zip(starts, ends, tasks, strict=True) if t.communicates is lane)
            assert all(before <= after for (_, before), (after, _) in pairwise(busy))
        in_order = [end for end, task in zip(ends, tasks, strict=True) if not task.communicates]
        assert in_order == sorted(in_order)
        moments = {0.0, *ends}
        assert all(start in moments for start in starts)  # nothing is idle for no reason
        assert max(ends) <= sum(task.seconds for task in tasks)
