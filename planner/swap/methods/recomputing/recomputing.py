"""A search for what to run again: a grid of prices, then small changes to those of the best, while that pays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from planner.cancel import Cancelled
from planner.swap.methods import checkpoint_validation as valid
from planner.swap.methods.eviction_portfolio import CLOSE
from planner.swap.methods.method import SearchContext, SearchStep
from planner.swap.methods.mutation import aligned
from planner.swap.methods.recomputing.trial import RecomputeOutcome, RecomputeTrial, TrialRunner
from planner.swap.problem.problem import Bytes, Flags
from planner.swap.recompute.choice import RecomputePrices, chosen_groups

#: Prices in the grid, in multiples of the seconds that a byte takes on the link.
_PRICES = (0.0, 1000.0, 30.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
#: Of the moments at which the forward pass holds least, every how many are kept.
_EVERY = (1, 2, 4, 0)
#: Two prices, one for what is made before some share of the forward pass, and one for the rest.
_LOW, _HIGH, _SHARES = (0.03, 0.3, 0.0), (1.0, 1000.0), (0.5, 0.8, 0.3, 0.65, 0.9, 0.15, 0.4)
#: Up to so many groups may run again for every choice of them to be tried.
_FEW_GROUPS = 5
_BATCH = 8
_ELITE = 6
_PACKED = 3
#: Evaluations without a gain of a tenth of a percent after which the search ends.
_PATIENCE = 200
_GAIN = 0.999
_STEP = 0.998
_LEAST_MEMORY = 0.6
_LEAST_PRICE = 1e-4
_MOST_PRICE = 1e6
_ATTEMPTS = 20
_SMALL = 0.01
#: Outcomes whose rates differ by less than this share count as one.
_SAME_RATE = 3e-4


class Recomputing:
    """Looks for plans in which ops run again.

    Args:
        context: the search context.
        copies: whether what does not run again may be copied to the host and back.
    """

    def __init__(self, context: SearchContext, *, copies: bool = True) -> None:
        self.context, self.problem, self.copies = context, context.problem, copies
        self.name = "joint" if copies else "recompute"
        self.runner = TrialRunner(self.problem, copies, context.recompute_limit)
        self.random = np.random.default_rng(context.seed)
        self.per_byte = 1 / self.problem.link.bandwidth
        self.queue = [RecomputeTrial(choice, self.problem.memory) for choice in self._grid()]
        self.tried: frozenset[bytes] = frozenset()
        self.elite: list[RecomputeOutcome] = []
        self.first = True  # whether nothing was tried yet
        self.two_prices = True  # whether the second half of the grid is still to come
        self.idle, self.goal = 0, np.inf

    def search_step(self) -> SearchStep | None:
        """Try a batch of prices."""
        before = self.queue, self.tried, self.elite, self.first, self.two_prices, self.idle, self.goal
        rng_state = self.random.bit_generator.state
        try:
            return self._search_step()
        except Cancelled:
            self.queue, self.tried, self.elite, self.first, self.two_prices, self.idle, self.goal = before
            self.random.bit_generator.state = rng_state
            raise

    def state_dict(self) -> dict[str, Any]:
        """The best outcomes, what is still to be tried, and the random state."""
        return {
            "queue": [trial.to_json() for trial in self.queue],
            "elite": [one.trial.to_json() for one in self.elite],
            "rates": [one.rate for one in self.elite],
            "tried": [key.hex() for key in sorted(self.tried)],
            "first": self.first,
            "two_prices": self.two_prices,
            "idle": self.idle,
            "goal": self.goal if np.isfinite(self.goal) else None,
            "random": self.random.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self.queue = [RecomputeTrial.from_json(self.problem, data) for data in state["queue"]]
        again = [self.runner.run(RecomputeTrial.from_json(self.problem, data), np.inf) for data in state["elite"]]
        self.elite = [
            replace(one, rate=valid.number(rate))
            for one, rate in zip(again, state["rates"], strict=True)
            if one is not None
        ]
        self.tried = frozenset(bytes.fromhex(key) for key in state["tried"])
        self.first, self.two_prices = map(bool, valid.flags([state["first"], state["two_prices"]], 2))
        self.idle, self.goal = valid.whole(state["idle"], 0, 1 << 40), valid.seconds(state["goal"])
        self.random.bit_generator.state = state["random"]

    def _search_step(self) -> SearchStep | None:
        best = self.context.best()
        if best <= self.context.bound * CLOSE or self.idle >= _PATIENCE or not self._possible():
            return None
        while not self.queue and self.two_prices:
            self.two_prices = False
            every = self.elite[0].trial.choice.every if self.elite else 1
            self.queue = [RecomputeTrial(choice, self.problem.memory) for choice in self._mixed(every)]
        scanning = bool(self.queue)
        batch, self.queue = self._unseen(self.queue) if scanning else (self._children(), self.queue)
        if not batch and not scanning:  # every change leads to what was tried
            return None
        found = self.context.each(lambda trial: self.runner.run(trial, best), batch)
        outcomes = [one for one in found if one is not None]
        if not scanning:
            self.idle += max(1, len(batch))
        last_of_scan = scanning and not self.queue
        self._keep(outcomes)
        plan, packings = None, []
        first, self.first = self.first, False
        if not scanning or last_of_scan or first:  # the first plan comes soon, the others once all prices were tried
            fast = [one for one in self.elite if one.packing is None and one.seconds < best][: 1 if first else _PACKED]
            packings = self.context.each(lambda one: self.runner.pack(one, best), fast)
            self.elite = [one for one in self.elite if not any(one is other for other in fast)]
            self._keep(packings)
            fitting = [one for one in packings if one.fits and one.seconds < best]
            if fitting:
                winner = min(fitting, key=_rate)
                plan, best = winner.plan(self.name), winner.seconds
            # where packing overshoots, the same prices get that much less memory and a little less again
            self.queue = self.queue + [less for one in packings if not one.fits and (less := self._less(one))]
        if best < self.goal * _GAIN:
            self.goal, self.idle = best, 0
        share = 0.0 if scanning else min(1.0, self.idle / _PATIENCE)
        return SearchStep(len(batch), plan, _DOING, share, min(map(_estimate, packings or outcomes), default=np.inf))

    def _possible(self) -> bool:
        """Whether anything can run again, and what persists fits if nothing may leave."""
        arrays = self.problem.arrays
        if not self.copies and int(arrays.bytes[arrays.persistent].sum()) > self.problem.memory:
            return False
        return self.problem.ops > 0 and self.runner.forward.useful

    def _grid(self) -> Iterator[RecomputePrices]:
        for every in _EVERY:
            for price in _PRICES:
                yield RecomputePrices(every, np.full(self.problem.storages, price * self.per_byte))
        groups = np.flatnonzero(self.runner.forward.repeatable)
        for count in range(len(groups) + 1 if len(groups) <= _FEW_GROUPS else 0):
            for again in combinations(groups, count):
                made_again = np.isin(self.runner.forward.group_of, again)
                yield RecomputePrices(0, np.where(made_again, _MOST_PRICE, 0.0) * self.per_byte)

    def _mixed(self, every: int) -> Iterator[RecomputePrices]:
        made_at = self.runner.forward.made_at
        for share in _SHARES:
            early = made_at < share * made_at.max()
            for low in _LOW:
                for high in _HIGH:
                    for chosen in (early, ~early):
                        yield RecomputePrices(every, np.where(chosen, high, low) * self.per_byte)

    def _unseen(self, queue: list[RecomputeTrial]) -> tuple[list[RecomputeTrial], list[RecomputeTrial]]:
        """The first trials of the queue that choose what none before did, and the rest of it."""
        batch: list[RecomputeTrial] = []
        taken = 0
        for trial in queue:
            if len(batch) == _BATCH:
                break
            taken += 1
            if self._is_new(trial, chosen_groups(self.runner.forward, trial.choice)):
                batch.append(trial)
        return batch, queue[taken:]

    def _is_new(self, trial: RecomputeTrial, chosen: Flags) -> bool:
        key = np.packbits(chosen).tobytes() + trial.memory.to_bytes(8, "little")
        if key in self.tried:
            return False
        self.tried |= {key}
        return True

    def _children(self) -> list[RecomputeTrial]:
        """Trials whose prices differ a little from those of the best outcomes."""
        children: list[RecomputeTrial] = []
        if not self.elite:
            return children
        for _ in range(_BATCH):
            rank = min(int(self.random.geometric(0.4)) - 1, len(self.elite) - 1)
            parent = self.elite[rank]
            trial = parent.trial
            for _ in range(_ATTEMPTS):  # prices may change without changing what is chosen
                trial = self._changed(trial)
                if self._is_new(trial, chosen_groups(self.runner.forward, trial.choice)):
                    children.append(trial)
                    break
        return children

    def _changed(self, trial: RecomputeTrial) -> RecomputeTrial:
        """Multiply the prices of what is made in some time, or of one size, by a random factor."""
        random, forward = self.random, self.runner.forward
        every, price = trial.choice.every, trial.choice.price
        if random.random() < 0.05:
            every = int(random.choice(_EVERY))
        end = forward.made_at.max()
        begin = random.random()
        stop = begin + random.random() ** 2
        changed = (forward.made_at >= begin * end) & (forward.made_at <= stop * end)
        if random.random() < 0.5:
            changed &= forward.bytes == forward.bytes[random.choice(self._large())]
        factor = float(np.exp(random.normal(0, 2.5)))
        least, most = _LEAST_PRICE * self.per_byte, _MOST_PRICE * self.per_byte
        price = np.where(changed, (np.maximum(price, least) * factor).clip(least, most), price)
        share = trial.memory / max(1, self.problem.memory)
        if share < 1 and random.random() < 0.2:  # some prices leave less room to packing than others
            share = float(min(1.0, share * np.exp(abs(random.normal(0, 0.02)))))
        return RecomputeTrial(RecomputePrices(every, price), aligned(self.problem, share))

    def _large(self) -> Bytes:
        """The numbers of storages of the forward pass that are not small beside the largest."""
        sizes = self.runner.forward.bytes
        return np.flatnonzero(sizes >= _SMALL * sizes.max())

    def _keep(self, outcomes: list[RecomputeOutcome]) -> None:
        """Keep the best, one per rate."""
        every = sorted(self.elite + outcomes, key=_rate, reverse=True)
        distinct = {round(np.log(max(one.rate, 1e-300)) / _SAME_RATE): one for one in every}
        self.elite = sorted(distinct.values(), key=_rate)[:_ELITE]

    def _less(self, outcome: RecomputeOutcome) -> RecomputeTrial | None:
        assert outcome.packing is not None
        memory = aligned(self.problem, _STEP * outcome.trial.memory / outcome.packing.peak)
        if memory < _LEAST_MEMORY * self.problem.memory:
            return None
        return RecomputeTrial(outcome.trial.choice, memory)


_DOING = "weighing what to run again"


def _rate(one: RecomputeOutcome) -> float:
    return one.rate


def _estimate(one: RecomputeOutcome) -> float:
    """What an outcome may lead to: one that packs too high counts as that much slower."""
    over = 1.0 if one.packing is None else max(1.0, one.packing.peak / max(1, one.problem.memory))
    return one.seconds * over


def without_copies(context: SearchContext) -> Recomputing:
    """The same search, for plans that copy nothing."""
    return Recomputing(context, copies=False)
