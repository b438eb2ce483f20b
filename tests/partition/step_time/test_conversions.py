"""Bytes of conversions over several levels, against what is known of whole collectives."""

from itertools import product
from math import prod

import pytest

from planner.machine import Collective
from planner.partition import Partial, Reduction, Replicated, Split, Unread
from planner.partition.coarse import Slot
from planner.partition.step_time.conversions import conversion, spread_bytes

SUM = Partial(Reduction.SUM)
ROWS, COLUMNS, WHOLE = Split(0, 1, 24, 1), Split(1, 1, 48, 1), Replicated()
SHAPE, BYTES = (24, 48), 24 * 48 * 4


def slot():
    """A matrix, made so that it does not matter which version of the coarse graph has which other fields."""
    known = {"group": 0, "labels": (), "known": frozenset(), "shape": SHAPE, "itemsize": 4, "count": 1}
    return Slot(**{name: known[name] for name in Slot.__dataclass_fields__})


def moved(mesh, haves, wants):
    units = [spread_bytes(slot(), *each) for each in zip(haves, wants, mesh, strict=True)]
    return conversion(units, haves, wants, mesh)


def total(mesh, haves, wants):
    return sum(part.bytes for part in moved(mesh, haves, wants))


MESHES = [(2, 2), (2, 3), (3, 2), (4, 2), (2, 2, 2)]


@pytest.mark.parametrize("mesh", MESHES)
def test_levels_together_move_what_one_collective_of_all_workers_moves(mesh):
    workers, levels = prod(mesh), len(mesh)
    gathered = total(mesh, [ROWS] * levels, [WHOLE] * levels)
    assert gathered == (workers - 1) * BYTES
    assert total(mesh, [SUM] * levels, [ROWS] * levels) == (workers - 1) * BYTES
    assert total(mesh, [SUM] * levels, [WHOLE] * levels) == 2 * (workers - 1) * BYTES


@pytest.mark.parametrize("mesh", MESHES)
def test_nothing_moves_that_need_not(mesh):
    levels = len(mesh)
    for state in (ROWS, COLUMNS, WHOLE, SUM):
        assert moved(mesh, [state] * levels, [state] * levels) == ()
        assert moved(mesh, [state] * levels, [Unread()] * levels) == ()
    for want in (ROWS, COLUMNS, SUM):
        assert moved(mesh, [WHOLE] * levels, [want] * levels) == ()
    assert moved(mesh, [ROWS] * levels, [SUM] * levels) == ()


def test_every_copy_is_served():
    assert total((2, 3), [ROWS, WHOLE], [WHOLE, WHOLE]) == 3 * BYTES
    assert total((2, 3), [WHOLE, ROWS], [WHOLE, WHOLE]) == 2 * 2 * BYTES


def test_what_inner_levels_hold_is_all_that_outer_levels_move():
    assert total((2, 4), [ROWS, COLUMNS], [COLUMNS, COLUMNS]) == BYTES / 2
    assert total((2, 4), [ROWS, COLUMNS], [WHOLE, COLUMNS]) == BYTES


@pytest.mark.parametrize(
    ("have", "want", "collective"),
    [
        (ROWS, WHOLE, Collective.ALL_GATHER),
        (ROWS, COLUMNS, Collective.ALL_TO_ALL),
        (SUM, ROWS, Collective.REDUCE_SCATTER),
        (SUM, WHOLE, Collective.ALL_REDUCE),
        (None, WHOLE, Collective.ALL_GATHER),
        (None, ROWS, Collective.ALL_TO_ALL),
        (SUM, None, Collective.REDUCE_SCATTER),
    ],
)
def test_each_pair_of_states_is_a_collective(have, want, collective):
    (part,) = moved((4,), [have], [want])
    assert (part.collective, part.level) == (collective, 0)
    assert part.bytes > 0


def test_never_more_than_each_worker_fetching_all_and_reducing_all():
    for mesh in MESHES:
        states = (ROWS, COLUMNS, WHOLE, SUM)
        for haves, wants in product(product(states, repeat=len(mesh)), repeat=2):
            assert 0 <= total(mesh, haves, wants) <= 2 * prod(mesh) * BYTES
