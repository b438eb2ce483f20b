"""Sessions whose first plan is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from planner import zoo
from planner.capture import capture
from widgets.session import Session


@pytest.fixture(scope="session")
def planned() -> Iterator[Callable[..., Session]]:
    """A session about a model of the zoo, or any graph, as soon as its first plan is there."""
    made: dict[Any, Session] = {}

    def one(source: Any, budget: str | int = "50%", machine: str = "v100-16gb") -> Session:
        key = (source, budget, machine)
        if key not in made:
            graph = capture(zoo.load(source)) if isinstance(source, str) else source
            made[key] = Session(graph, machine=machine, budget=budget)
        _ = made[key].plan
        return made[key]

    yield one
    for session in made.values():
        session.close()
