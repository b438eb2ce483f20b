"""The plans that were shown or found by a search, whatever the machine and the budget, and what was shown when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral

from planner.errors import StowageError
from planner.plan import PlanSummary, SwapPlan
from widgets.messages import label_of
from widgets.session.state.jobs import Job
from widgets.session.state.plan_cache import PlanCache
from widgets.session.state.plan_table import PlanRow, PlanTable
from widgets.session.state.saved_plan import SavedPlan

#: Limits on plans that have neither a name nor a note, and on what can be undone.
MOST_PLANS = 100
_MOST_VIEWS = 200
#: How many names are listed where a plan is not found.
_MOST_NAMES = 6
#: The longest name and note, in characters.
_LONGEST_NAME, _LONGEST_NOTE = 80, 1000


@dataclass(frozen=True)
class SearchKey:
    """What tells the searches of a list apart.

    Args:
        plan_cache: of the step on the machine that is planned for.
        budget_bytes: the budget.
        method: one of `planner.swap.METHODS`.
    """

    plan_cache: PlanCache
    budget_bytes: int
    method: str


@dataclass(eq=False)
class ListedPlan:
    """A plan of the list.

    Args:
        number: counted from 1.
        plan: with the budget that it was made within.
        plan_cache: of the step on its machine, with the op times and the scratch memory that it was made for.
        summary: its key figures.
        search: the search whose best plan it is, or was when it was named or noted; None for any other plan.
        name, note: the user's words, `""` for none.
        searched: the method of the search whose best plan it is, also of one that ended before the list was saved;
            None for any other plan.
    """

    number: int
    plan: SwapPlan
    plan_cache: PlanCache
    summary: PlanSummary
    search: SearchKey | None = None
    name: str = ""
    note: str = ""
    searched: str | None = None

    @property
    def shown_name(self) -> str:
        """Its name in the list."""
        return self.name or f"plan {self.number}"

    @property
    def marked(self) -> bool:
        """Whether the user gave it a name or a note."""
        return bool(self.name or self.note)


@dataclass(frozen=True, eq=False)
class PlanView:
    """What was shown at a time.

    Args:
        number: of the plan.
        budget_bytes: the budget then, which may be more than that of the plan.
        follows_device: whether the budget was that of the device because none was requested.
        job: the job that showed it.
    """

    number: int
    budget_bytes: int
    follows_device: bool
    job: Job | None


class PlanList:
    """The plans that were shown or searched for, in the order made; hold the message bus's lock to use it.

    A search has a row of its own, its best plan so far, even where another row is faster or the same plan. Of the
    points of the front, only those that were shown are here.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._plans: dict[int, ListedPlan] = {}
        self._made = 0
        self._views: list[PlanView] = []
        self._at = -1

    @property
    def plans(self) -> list[ListedPlan]:
        """All plans of the list."""
        return list(self._plans.values())

    @property
    def view(self) -> PlanView | None:
        """What was shown last, None before there is any."""
        return self._views[self._at] if self._views else None

    def find(self, plan: int | str) -> ListedPlan:
        """The plan of a number, or of the name that the list shows for it.

        Raises:
            StowageError: there is none, or several have this name.
        """
        is_number = isinstance(plan, Integral) and not isinstance(plan, bool)
        found = [one for one in self._plans.values() if plan == (one.number if is_number else one.shown_name)]
        if len(found) == 1:
            return found[0]
        if found:
            numbers = _either([one.number for one in found])
            raise StowageError(f"{len(found)} plans are named {plan!r}; give the number of one, {numbers}")
        gone = is_number and 0 < int(plan) <= self._made
        raise StowageError(f"{f'plan {plan} was dropped' if gone else f'there is no plan {plan!r}'}; {self._known()}")

    def find_alike(self, plan: SwapPlan) -> ListedPlan | None:
        """The first row with this plan, whatever the budget and though one of the two was read from a file, or None."""
        same = (one for one in self._plans.values() if one.summary.is_of(plan))
        return next(same, None) or next((one for one in self._plans.values() if _alike(one.plan, plan)), None)

    def record(
        self, plan: SwapPlan, plan_cache: PlanCache, job: Job, follows_device: bool, *, unasked: bool = False
    ) -> None:
        """Record that a plan is shown, and list it unless it is there already, perhaps for another budget.

        Args:
            plan, plan_cache: as in `ListedPlan`.
            job, follows_device: as in `PlanView`.
            unasked: whether it takes the place of a slower plan for the same budget, which nobody asked for, and which
                is no step of its own to undo.
        """
        known = next((one for one in self._plans.values() if one.summary.is_of(plan)), None)
        if known is None:
            known = next((one for one in self._plans.values() if _alike(one.plan, plan)), None)
            if known is None:
                known = self._add(plan, plan_cache)
            else:  # it was loaded from a file, and is found here as well
                known.plan = replace(plan, budget_bytes=known.plan.budget_bytes)
                known.summary = _summary(plan, plan_cache)
        self._show(PlanView(known.number, plan.budget_bytes, follows_device, job), unasked=unasked)
        self._drop()

    def record_best(self, plan: SwapPlan, plan_cache: PlanCache, method: str) -> bool:
        """List the best plan so far of a search, whether or not it is shown; returns whether the list changed.

        It takes the place of the search's last one, unless the user named or noted that.

        Args:
            plan, plan_cache: as in `ListedPlan`.
            method: the method of the search.
        """
        search = SearchKey(plan_cache, plan.budget_bytes, method)
        last = next((one for one in reversed(self._plans.values()) if one.search == search), None)
        if last is not None and last.summary.is_of(plan):
            return False
        if last is not None and not last.marked:
            last.plan, last.summary = plan, _summary(plan, plan_cache)
        else:
            self._add(plan, plan_cache, search)
            self._drop()
        return True

    def add(self, saved: Sequence[tuple[SavedPlan, PlanCache]]) -> list[ListedPlan]:
        """List plans of a file, but those that are there already; returns those that were new.

        No search that begins here takes the place of one, which may be faster than what it finds.

        Args:
            saved: each with its plan cache, as in `ListedPlan`.

        Raises:
            StowageError: a name or a note is too long; then none is listed.
        """
        for one, _ in saved:
            _check_words(one.name, one.note)
        before, new = self.plans, []  # two searches of a file may have come to the same plan
        for one, plan_cache in saved:
            if any(one.searched in (None, each.searched) and _alike(each.plan, one.plan) for each in before):
                continue
            added = self._add(one.plan, plan_cache)
            added.name, added.note, added.searched = one.name, one.note, one.searched
            new.append(added)
        self._drop()
        return new

    def write(self, plan: int | str, name: str | None = None, note: str | None = None) -> None:
        """Set the name or the note of a plan.

        Raises:
            StowageError: there is no such plan, or the text is too long.
        """
        found = self.find(plan)
        _check_words(name, note)
        found.name = found.name if name is None else "" if name.strip() == f"plan {found.number}" else name.strip()
        found.note = found.note if note is None else note.strip()

    def step(self, by: int) -> PlanView | None:
        """Go back (-1) or forward (1) in what was shown; returns what is to be shown, None if there is nothing."""
        if not 0 <= self._at + by < len(self._views):
            return None
        self._at += by
        return self._views[self._at]

    def can_step(self, by: int) -> bool:
        """Whether there is anything before (-1) or after (1) what is shown."""
        return 0 <= self._at + by < len(self._views)

    def table(self, shown: SwapPlan | None) -> PlanTable:
        """The list as a user reads it.

        Args:
            shown: the plan that is shown, None while there is none.
        """
        best, view = self._best(), self.view if shown is not None else None
        rows = [
            PlanRow(
                one.number, one.shown_name, label_of(one.plan_cache.feasibility.machine), one.plan,
                one.summary.percent_of_ideal, one.summary.bytes_in + one.summary.bytes_out,
                one.summary.recompute_seconds, one.searched, one.note,
                one.number in best, view is not None and view.number == one.number,
            )
            for one in self._plans.values()
        ]  # fmt: skip
        return PlanTable(rows, self.dropped)

    def _known(self) -> str:
        """What plans there are, as advice."""
        if not self._plans:
            return "wait for the first one"
        numbers, names = sorted(self._plans), [repr(one.name) for one in self._plans.values() if one.name]
        others = f", or {_either(names[:_MOST_NAMES])}" if names else ""
        return f"give a number from {numbers[0]} to {numbers[-1]}{others}"

    def _add(self, plan: SwapPlan, plan_cache: PlanCache, search: SearchKey | None = None) -> ListedPlan:
        self._made += 1
        added = ListedPlan(
            self._made, plan, plan_cache, _summary(plan, plan_cache), search,
            searched=None if search is None else search.method,
        )  # fmt: skip
        self._plans[added.number] = added
        return added

    def _show(self, view: PlanView, *, unasked: bool) -> None:
        now = self.view
        if now is not None and (now.number, now.budget_bytes) == (view.number, view.budget_bytes):
            return
        instead = now is not None and unasked and now.budget_bytes == view.budget_bytes
        # of two plans that a job shows, the second is what it came to
        if now is not None and (now.job is view.job or instead):
            self._views[self._at] = view
            before = self._views[self._at - 1] if self._at else None
            if before is not None and (before.number, before.budget_bytes) == (view.number, view.budget_bytes):
                del self._views[self._at]
                self._at -= 1
        else:
            self._views[self._at + 1 :] = [view]
            del self._views[:-_MOST_VIEWS]
            self._at = len(self._views) - 1

    def _best(self) -> set[int]:
        """By machine, the number of the fastest plan; of equally fast ones, that with the least memory."""
        best: dict[str, ListedPlan] = {}
        for one in self._plans.values():
            rank = one.plan.predicted.seconds, one.plan.peak_bytes
            known = best.get(one.plan.machine)
            if known is None or rank < (known.plan.predicted.seconds, known.plan.peak_bytes):
                best[one.plan.machine] = one
        return {one.number for one in best.values()}

    def _drop(self) -> None:
        """Drop the oldest plans above the limit, but none that is marked, the best, or shown."""
        kept = self._best() | ({self.view.number} if self.view is not None else set())
        unmarked = [one.number for one in self._plans.values() if not one.marked]
        away = [number for number in unmarked if number not in kept][: max(0, len(unmarked) - MOST_PLANS)]
        if not away:
            return
        for number in away:
            del self._plans[number]
        self.dropped += len(away)
        now = self.view
        self._views = [view for view in self._views if view.number in self._plans]
        self._at = self._views.index(now) if now is not None else -1


def _either(choices: Sequence[object]) -> str:
    *others, last = map(str, choices)
    return f"{', '.join(others)} or {last}" if others else last


def _check_words(name: str | None, note: str | None) -> None:
    for what, text, most in (("name", name, _LONGEST_NAME), ("note", note, _LONGEST_NOTE)):
        if text is not None and not isinstance(text, str):
            raise StowageError(f"the {what} of a plan must be a str, got {type(text).__name__}")
        if text is not None and len(text) > most:
            raise StowageError(f"the {what} of a plan must have at most {most:,} characters, got {len(text):,}")


def _summary(plan: SwapPlan, plan_cache: PlanCache) -> PlanSummary:
    return PlanSummary(plan_cache.feasibility.graph, plan, plan_cache.feasibility.ideal_seconds)


def _alike(one: SwapPlan, other: SwapPlan) -> bool:
    """Whether two plans are the same, but for their budgets, though one was read from a file."""
    parts = ("machine", "method", "peak_bytes", "queues", "workspaces", "residencies", "host_residencies")
    same = one.predicted.seconds == other.predicted.seconds
    return same and all(getattr(one, part) == getattr(other, part) for part in parts)
