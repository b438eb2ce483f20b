"""Happens-before against trying out every interleaving there is."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.plan import SwapIn, SwapOut
from planner.plan.validator import LANES, Entry, happens_before
from tests.plan.by_hand import END, plan
from tests.plan.changing import replace

COMPUTE, OUT, IN = range(3)


def entry(stream, number):
    return Entry(LANES[stream], number)


def queues(slots, outs, ins):
    """A plan of which only the queues matter."""
    return replace(
        plan(),
        order=tuple(range(slots)),
        swap_outs=tuple(SwapOut(0, ready, release) for ready, release in outs),
        swap_ins=tuple(SwapIn(0, start, use) for start, use in ins),
    )


def possible_overlaps(plan):
    """Pairs (x, y) such that y can begin while x is not done, and whether all can be done; by looking everywhere."""
    counts = (len(plan.order), len(plan.swap_outs), len(plan.swap_ins))

    def may_begin(stream, number, done):
        if stream == COMPUTE:
            outs = all(done[OUT] > k for k, out in enumerate(plan.swap_outs) if out.release <= number)
            return outs and all(done[IN] > k for k, copy in enumerate(plan.swap_ins) if copy.use <= number)
        if stream == OUT:
            return done[COMPUTE] > plan.swap_outs[number].ready
        copy = plan.swap_ins[number]
        outs = all(done[OUT] > k for k, out in enumerate(plan.swap_outs) if out.release <= copy.start)
        return outs and done[COMPUTE] >= copy.start

    pairs, finished = set(), False
    seen, todo = set(), [((0, 0, 0), (False, False, False))]
    while todo:
        done, running = todo.pop()
        if (done, running) in seen:
            continue
        seen.add((done, running))
        finished |= done == counts
        for stream in range(3):
            if running[stream]:
                after = tuple(d + (s == stream) for s, d in enumerate(done))
                todo.append((after, tuple(r and s != stream for s, r in enumerate(running))))
            elif done[stream] < counts[stream] and may_begin(stream, done[stream], done):
                begun = entry(stream, done[stream])
                for other in range(3):
                    pairs |= {(entry(other, k), begun) for k in range(done[other], counts[other])}
                todo.append((done, tuple(r or s == stream for s, r in enumerate(running))))
    return pairs, finished


@st.composite
def any_queues(draw):
    slots = draw(st.integers(1, 5))
    slot = st.integers(0, slots)
    outs = draw(st.lists(st.tuples(st.integers(-1, slots - 1), slot), max_size=3))
    ins = draw(st.lists(st.tuples(slot, slot), max_size=3))
    return queues(slots, outs, ins)


@settings(max_examples=400, deadline=None)
@given(any_queues())
def test_happens_before_is_exactly_what_holds_in_every_interleaving(plan):
    ordered = happens_before(plan)
    pairs, finished = possible_overlaps(plan)
    assert finished == (not ordered.stuck)
    if finished:
        counts = (len(plan.order), len(plan.swap_outs), len(plan.swap_ins))
        entries = [entry(stream, number) for stream in range(3) for number in range(counts[stream])]
        for first, then in product(entries, entries):
            assert ordered.before(first, then) == ((first, then) not in pairs)


def test_the_rules_one_by_one():
    ordered = happens_before(queues(4, outs=[(0, 2)], ins=[(2, 3)]))
    assert ordered.stuck == ()
    for first, then, expected in [
        ((COMPUTE, 0), (OUT, 0), True),  # ready
        ((COMPUTE, 1), (OUT, 0), False),
        ((OUT, 0), (COMPUTE, 1), False),
        ((OUT, 0), (COMPUTE, 2), True),  # release
        ((COMPUTE, 1), (IN, 0), True),  # start
        ((OUT, 0), (IN, 0), True),  # release <= start
        ((COMPUTE, 2), (IN, 0), False),
        ((IN, 0), (COMPUTE, 2), False),
        ((IN, 0), (COMPUTE, 3), True),  # use
    ]:
        assert ordered.before(entry(*first), entry(*then)) is expected


def test_an_entry_knows_what_those_before_it_in_its_queue_waited_for():
    ordered = happens_before(queues(4, outs=[(2, 4), (-1, 4)], ins=[]))
    assert ordered.before(entry(COMPUTE, 2), entry(OUT, 1))
    assert not ordered.before(entry(COMPUTE, 3), entry(OUT, 1))


def test_the_end_of_the_step_comes_after_everything():
    ordered = happens_before(plan())
    end = entry(COMPUTE, END)
    for stream, count in ((COMPUTE, END), (OUT, 2), (IN, 2)):
        assert all(ordered.before(entry(stream, number), end) for number in range(count))


def test_streams_that_wait_for_each_other_are_found():
    ordered = happens_before(queues(4, outs=[], ins=[(3, 3), (1, 2)]))
    assert ordered.stuck == (entry(COMPUTE, 2), entry(IN, 0))
