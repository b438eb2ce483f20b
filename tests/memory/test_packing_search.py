"""A packing with `seconds`: the search of all placements, ended by a proof, the time, Ctrl-C or a token."""

import signal

import numpy as np
import pytest

from planner.cancel import Cancelled, CancelToken
from planner.memory import pack


def cut_square(pieces, seed):
    """Boxes that fill a square of 1024 bytes and 64 times, cut again and again at random."""
    random = np.random.default_rng(seed)
    found = [(0, 64, 0, 1024)]
    while len(found) < pieces:
        areas = np.array([(up - low) * (top - bottom) for low, up, bottom, top in found])
        at = int(random.choice(len(found), p=areas / areas.sum()))
        low, up, bottom, top = found[at]
        if random.random() < 0.5 and up - low > 1:
            cut = int(random.integers(low + 1, up))
            found[at : at + 1] = [(low, cut, bottom, top), (cut, up, bottom, top)]
        elif top - bottom > 1:
            cut = int(random.integers(bottom + 1, top))
            found[at : at + 1] = [(low, up, bottom, cut), (low, up, cut, top)]
    lower, upper, bottoms, tops = np.array(found).T
    return lower, upper, tops - bottoms


def overlaps(boxes, offsets):
    """Whether two boxes that are alive together share a byte."""
    byte = np.zeros((64, 8192), np.int64)
    for low, up, size, offset in zip(*boxes, offsets, strict=True):
        byte[low:up, offset : offset + size] += 1
    return bool((byte > 1).any())


PUZZLE = cut_square(60, 4)


def test_a_puzzle_that_orders_do_not_solve_is_solved_by_the_search():
    assert pack(*PUZZLE).peak > 1024
    found = pack(*PUZZLE, seconds=3)
    assert (found.peak, found.bound, found.optimal) == (1024, 1024, True)
    assert not overlaps(PUZZLE, found.offsets)
    assert found.seconds < 60


def test_no_seconds_are_enough_for_a_placement():
    found = pack(*PUZZLE, seconds=0)
    assert not overlaps(PUZZLE, found.offsets)
    assert found.peak > found.bound == 1024
    assert not found.optimal


@pytest.mark.parametrize("how", ["Ctrl-C", "token"])
@pytest.mark.parametrize("when", ["placing by greedy orders", "searching all placements"])
def test_a_stopped_search_gives_the_best_placement_so_far(how, when):
    stop, said = CancelToken(), []

    def listen(_, doing):
        said.append(doing)
        if doing.startswith(when):
            if how == "token":
                stop.cancel()
            else:
                signal.raise_signal(signal.SIGINT)

    found = pack(*PUZZLE, seconds=1, stop=stop, progress=listen)
    assert said[-1].startswith(f"{when}: {found.peak:,} bytes")
    assert not overlaps(PUZZLE, found.offsets)
    assert found.peak > found.bound == 1024


def test_without_seconds_a_stopped_search_gives_nothing():
    stop = CancelToken()
    with pytest.raises(Cancelled):
        pack(*PUZZLE, stop=stop, progress=lambda *_: stop.cancel())
    with pytest.raises(KeyboardInterrupt):
        pack(*PUZZLE, progress=lambda *_: signal.raise_signal(signal.SIGINT))
    stop = CancelToken()
    stop.cancel()
    with pytest.raises(Cancelled):
        pack(*PUZZLE, seconds=1, stop=stop)
