"""A local search around the best plan in which ops run again: what runs again stays, all else may change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from planner.plan import SwapPlan
from planner.swap.methods import checkpoint_validation as valid
from planner.swap.methods.local_search import LocalSearch
from planner.swap.methods.method import SearchContext, SearchStep
from planner.swap.problem.problem import Flags
from planner.swap.recompute.forward_pass import forward_pass
from planner.swap.recompute.rewrite import rewrite


class Refining:
    """Improves the best plan if ops run again in it.

    Args:
        context: the search context.
    """

    def __init__(self, context: SearchContext) -> None:
        self.context = context
        self.forward = forward_pass(context.problem)
        self.chosen = self._runs_again(context.plan())
        self.search = self._search()

    def search_step(self) -> SearchStep | None:
        """Evaluate a batch of mutated candidates."""
        return None if self.search is None else self.search.search_step()

    def state_dict(self) -> dict[str, Any]:
        """What runs again, and the state of the local search."""
        search = None if self.search is None else self.search.state_dict()
        return {"chosen": np.flatnonzero(self.chosen).tolist(), "search": search}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        groups = len(self.chosen)
        self.chosen = np.zeros(groups, np.bool_)
        self.chosen[valid.wholes(state["chosen"], None, 0, groups - 1)] = True
        if not (self.forward.repeatable | ~self.chosen).all():
            raise ValueError("an op runs again that must not")
        self.search = self._search()
        if self.search is not None:
            self.search.load_state_dict(state["search"])

    def _search(self) -> LocalSearch | None:
        if not self.chosen.any():
            return None
        problem = rewrite(self.context.problem, self.forward, self.chosen).problem
        return LocalSearch(replace(self.context, problem=problem, bound=problem.ideal_seconds))

    def _runs_again(self, plan: SwapPlan | None) -> Flags:
        """`[groups]`, those whose ops run again in a plan."""
        count = np.zeros(self.context.problem.ops, np.int64)
        if plan is not None:
            np.add.at(count, np.array(plan.order, np.int64), 1)
        groups = self.forward.groups
        first = groups.items[groups.start[:-1]] if len(groups.start) > 1 else np.empty(0, np.int32)
        return np.asarray(count[first] > 1, np.bool_)
