"""A packing with `seconds`: the search of all placements, ended by a proof, the time, Ctrl-C or a token."""

import signal
from itertools import combinations
from math import inf

import numpy as np
import pytest

from planner.cancel import Cancelled, CancelToken
from planner.memory import pack
from planner.memory.packing import portfolio, search
from planner.memory.packing.exact import place_exactly
from planner.memory.packing.problem import checked


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


def cyclic_boxes(seed):
    """A few boxes whose lives go round in a circle, so that they often need more than is alive at once."""
    random = np.random.default_rng(seed)
    lower, life = random.integers(0, 9, 8), random.integers(4, 6, 8)
    return checked(lower, (lower + life) % 9, random.integers(1, 7, 8), 1, None, True, None)


def masks_of(problem):
    """By box, the segments of time in which it is alive, as bits."""
    masks = np.zeros(len(problem.sizes), np.int64)
    for box in range(len(masks)):
        for low, up in problem.span[problem.span_at[box] : problem.span_at[box + 1]].tolist():
            masks[box] |= (1 << up) - (1 << low)
    return masks


def fits_exactly(problem, chosen, height):
    """Whether some boxes fit below a height, by trying all orders from below."""
    masks = masks_of(problem) * np.isin(np.arange(len(problem.sizes)), chosen)
    return place_exactly(masks, problem.sizes, problem.segments, height, 10**9, np.zeros(len(masks), np.int64)) == 1


PUZZLE = cut_square(60, 4)


def test_every_strategy_finds_a_placement_or_boxes_that_have_none(monkeypatch):
    strategies, refuted = portfolio._STRATEGIES, 0
    for seed in range(24):
        problem = cyclic_boxes(seed)
        masks, fits = masks_of(problem), fits_exactly(problem, range(8), problem.bound)
        refuted += not fits
        for strategy in strategies:
            monkeypatch.setattr(portfolio, "_STRATEGIES", (strategy,))
            found = portfolio.CompleteSearch(problem).decide(problem.bound, None, inf, CancelToken())
            assert found.fits == fits
            if fits:
                tops = found.offsets + problem.sizes
                assert tops.max() <= problem.bound
                for one, other in combinations(range(8), 2):
                    apart = found.offsets[other] >= tops[one] or found.offsets[one] >= tops[other]
                    assert apart or not masks[one] & masks[other]
            else:
                assert not fits_exactly(problem, found.blamed, problem.bound)
    assert 6 <= refuted <= 18


def test_a_puzzle_that_orders_do_not_solve_is_solved_by_the_search():
    assert pack(*PUZZLE).peak > 1024
    found = pack(*PUZZLE, seconds=3)
    assert (found.peak, found.bound, found.optimal) == (1024, 1024, True)
    assert not overlaps(PUZZLE, found.offsets)
    assert found.seconds < 60


def test_most_of_a_search_is_at_the_least_height_and_the_rest_gets_lower(monkeypatch):
    # time goes by with visited nodes and looks at the clock, so that the search is the same every time
    now, nodes, place = [0.0], {}, portfolio.place_completely

    def clock():
        now[0] += 0.001
        return now[0]

    def counted(size, highest, *rest):
        result, visited = place(size, highest, *rest)
        height = int((highest + size).max())
        nodes[height] = nodes.get(height, 0) + visited
        now[0] += visited / 4000
        return result, visited

    monkeypatch.setattr(search, "perf_counter", clock)
    monkeypatch.setattr(portfolio, "perf_counter", clock)
    monkeypatch.setattr(portfolio, "place_completely", counted)
    puzzle = cut_square(300, 1)
    found, ordered = pack(*puzzle, seconds=10), pack(*puzzle)
    assert found.bound == found.max_live < found.peak < ordered.peak
    assert not overlaps(puzzle, found.offsets)
    assert len(nodes) > 5
    assert 2 * nodes[found.bound] > sum(nodes.values())


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
