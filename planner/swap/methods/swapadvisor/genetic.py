"""The genetic search of SwapAdvisor (ASPLOS 2020, section 4.3): schedules and pools together."""

from __future__ import annotations

from math import ceil
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.swap.methods import checkpoint_validation as valid
from planner.swap.methods.method import SearchContext, SearchStep
from planner.swap.methods.swapadvisor.allocation_gene import Allocation
from planner.swap.methods.swapadvisor.individual import (
    Genes,
    Individual,
    Rates,
    breed_allocations,
    breed_schedules,
    from_data,
    random_schedule,
    to_data,
)
from planner.swap.methods.swapadvisor.pool import default_allocation, demand_of, random_allocation
from planner.swap.methods.swapadvisor.pool_planner import pool_planner
from planner.swap.problem.problem import Ints
from planner.swap.schedule.base_orders import captured

#: Each crossover of two schedules and two pools gives this many children.
_CHILDREN = 4
#: A search step makes as many crossovers as keep it well under a second on one core, and at most `_MOST_CROSSOVERS`.
_OPS_PER_STEP = 20_000
_MOST_CROSSOVERS = 9
_BOUND_MET = 1 + 1e-9
#: Generations after which the search gives up if no plan at all keeps to the host budget.
_HOPELESS_GENERATIONS = 2
_GAIN = 0.999


class Seeded(NamedTuple):
    """The parents of some children, None for a random individual, and the seed of all random draws for them."""

    parents: tuple[Individual, Individual] | None
    seed: list[int]


class Genetic:
    """The paper's search. A search step evaluates a few individuals; only a new best is turned into a plan.

    Args:
        context: the search context; all random draws follow from its seed and the number of the search step.
        individuals: size of the population; 144 in the paper.
        mutation: probability that an op, a size or a class mutates; about 0.1 in the paper.
        victim_threshold: how long ago a victim should have been used last, in multiples of the time that its copy
            takes on the link. The paper gives no value; at 1 its copy out could be done by now, which gives the times
            of figure 1.
        count_width: standard deviation of the Gaussian around a count as a share of it. Not in the paper.
        count_spread: standard deviation at least, in objects, so that small counts change too. Not in the paper.
        temperature: of the softmax over (T_best - t) / T_best. Not in the paper; 1 is the plain softmax.
        patience: generations without a gain of a tenth of a percent that end the search; the paper ends it after 30
            minutes, most of the gain in the first 100 seconds.
        replacement: which survive once there are as many children as individuals, the `"fastest"` of both or those
            drawn by `"softmax"` among both, the best always. The paper does not say.
        search_schedule: False for only the captured order.
        search_allocation: False for only the pool of `default_allocation`: sizes up to the next power of two share a
            class, with objects in proportion to what is in use at once in the captured order.
    """

    def __init__(
        self,
        context: SearchContext,
        *,
        individuals: int = 144,
        mutation: float = 0.1,
        victim_threshold: float = 1.0,
        count_width: float = 0.25,
        count_spread: float = 1.0,
        temperature: float = 1.0,
        patience: int = 50,
        replacement: Literal["fastest", "softmax"] = "fastest",
        search_schedule: bool = True,
        search_allocation: bool = True,
    ) -> None:
        problem = context.problem
        self.context, self.individuals = context, individuals
        self.rates = Rates(mutation, count_width, count_spread)
        self.temperature, self.patience, self.replacement = temperature, patience, replacement
        self.search_schedule, self.search_allocation = search_schedule, search_allocation
        self.captured, self.demand = captured(problem), demand_of(problem)
        self.default_pool = default_allocation(problem, self.demand)
        self.crossovers = min(_MOST_CROSSOVERS, max(1, _OPS_PER_STEP // max(1, problem.ops)))
        self.planners = [
            pool_planner(problem, self.demand, victim_threshold) for _ in range(_CHILDREN * self.crossovers)
        ]
        self.population: list[Individual] = []
        self.children: list[Individual] = []
        self.search_steps = self.generation = 0
        self.best = self.goal = np.inf
        self.last_gain = 0  # the generation of the last gain

    def search_step(self) -> SearchStep | None:
        """Evaluate a few individuals.

        None once the bound is met, nothing is left to evaluate, nothing has improved for long, or no plan keeps to the
        host budget.
        """
        if self.best <= self.context.bound * _BOUND_MET or (self.population and not self._searched()):
            return None
        if self.generation - self.last_gain >= self.patience:
            return None
        if self.generation >= _HOPELESS_GENERATIONS and self.context.best() == np.inf:
            return None
        found = self._evaluated()
        fastest = min(found, key=lambda one: one.seconds)
        plan = None
        if fastest.seconds < self.best:
            plan = self.planners[0].plan(fastest.order, fastest.allocation)
        # nothing has changed so far, so a cancelled step is repeated by the next call
        self.best = min(self.best, fastest.seconds)
        self.search_steps += 1
        filling = len(self.population) < self._size()
        (self.population if filling else self.children).extend(found)
        if len(self.children) >= self.individuals:
            self.population = self._survivors(self.population + self.children)
            self.children = []
            self.generation += 1
        if self.best < self.goal * _GAIN:
            self.goal, self.last_gain = self.best, self.generation
        return SearchStep(len(found), plan, self._doing(), self._share())

    def state_dict(self) -> dict[str, Any]:
        """The population, the children so far, and the step number, from which all random draws follow."""
        return {
            "search_steps": self.search_steps,
            "generation": self.generation,
            "best": self.best if np.isfinite(self.best) else None,
            "goal": self.goal if np.isfinite(self.goal) else None,
            "last_gain": self.last_gain,
            "population": to_data(self.population),
            "children": to_data(self.children),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self.search_steps, self.generation = (
            valid.whole(state[name], 0, 1 << 40) for name in ("search_steps", "generation")
        )
        self.best, self.goal = (
            valid.seconds(state["best"]),
            valid.seconds(state["goal"]),
        )
        self.last_gain = valid.whole(state["last_gain"], 0, self.generation)
        self.population, self.children = (
            from_data(self.context.problem, self.demand, state[name]) for name in ("population", "children")
        )

    def _searched(self) -> bool:
        return self.search_schedule or self.search_allocation

    def _size(self) -> int:
        return self.individuals if self._searched() else 1

    def _doing(self) -> str:
        return f"generation {self.generation} of schedules and pools"

    def _share(self) -> float:
        """The share of the first generation that is evaluated, then the share of the patience that is used up."""
        if len(self.population) < self._size():
            return len(self.population) / self._size()
        return min(1.0, (self.generation - self.last_gain + len(self.children) / self.individuals) / self.patience)

    def _evaluated(self) -> list[Individual]:
        """The individuals of this search step, with their times."""
        genes_by_parents = self.context.each(self._make, self._parents())
        genes = [one for group in genes_by_parents for one in group]
        seconds = self.context.each(self._time, list(enumerate(genes)))
        return [Individual(*pair, time) for pair, time in zip(genes, seconds, strict=True)]

    def _parents(self) -> list[Seeded]:
        """The parents and seeds of the individuals to make in this search step."""
        missing = self._size() - len(self.population)
        seed = [self.context.seed, self.search_steps]
        if missing > 0:
            return [Seeded(None, [*seed, k]) for k in range(min(missing, len(self.planners)))]
        random = np.random.default_rng(seed)
        probabilities = softmax(np.array([one.seconds for one in self.population]), self.temperature)
        children_per_pair = (2 if self.search_schedule else 1) * (2 if self.search_allocation else 1)
        crossovers = min(self.crossovers, ceil((self.individuals - len(self.children)) / children_per_pair))
        pairs = random.choice(len(probabilities), (crossovers, 2), p=probabilities)
        return [Seeded((self.population[a], self.population[b]), [*seed, k]) for k, (a, b) in enumerate(pairs)]

    def _make(self, seeded: Seeded) -> list[Genes]:
        """A random individual, or all pairs of two schedules and two pools that two parents make."""
        problem, random = self.context.problem, np.random.default_rng(seeded.seed)
        problem.stop.check()
        schedules: tuple[Ints, ...] = (self.captured,)
        pools: tuple[Allocation, ...] = (self.default_pool,)
        if seeded.parents is None:
            if self.search_schedule:
                schedules = (random_schedule(problem, self.captured, random),)
            if self.search_allocation:
                pools = (random_allocation(self.demand, random),)
        else:
            one, other = seeded.parents
            if self.search_schedule:
                schedules = breed_schedules(problem, one.order, other.order, self.rates, random)
            if self.search_allocation:
                pools = breed_allocations(self.demand, one.allocation, other.allocation, self.rates, random)
        return [(schedule, pool) for schedule in schedules for pool in pools]

    def _time(self, item: tuple[int, Genes]) -> float:
        """Evaluate on this item's own scratch."""
        planner_index, (order, allocation) = item
        return self.planners[planner_index].seconds(order, allocation)

    def _survivors(self, candidates: list[Individual]) -> list[Individual]:
        """The surviving individuals, fastest first."""
        seconds = np.array([one.seconds for one in candidates])
        order = np.argsort(seconds, kind="stable")
        if self.replacement == "softmax":
            random = np.random.default_rng([self.context.seed, self.search_steps, self.generation])
            probabilities = softmax(seconds, self.temperature)
            with np.errstate(divide="ignore"):  # the infinitely slow are drawn only after all others
                drawn = np.log(probabilities) + random.gumbel(size=len(probabilities))
            drawn[order[0]] = np.inf
            chosen = np.argsort(-drawn, kind="stable")[: self.individuals]
            order = chosen[np.argsort(seconds[chosen], kind="stable")]
        return [candidates[k] for k in order[: self.individuals]]


def softmax(seconds: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """The probability of each individual by its normalised time (T_best - t) / T_best; uniform if none is finite."""
    best = seconds.min()
    if not np.isfinite(best):
        return np.full(len(seconds), 1 / len(seconds))
    # a step of zero seconds cannot be normalised
    weights = np.exp((best - seconds) / (best or 1.0) / temperature)
    return np.asarray(weights / weights.sum())
