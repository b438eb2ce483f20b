"""A terminal to type into."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from planner.cli import main


@dataclass(frozen=True)
class Answer:
    status: int
    out: str
    err: str
    progress: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def planner(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Run `python -m planner` with these words."""

    def run(*words: object) -> Answer:
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        lines = err.splitlines(keepends=True)
        said = [line for line in lines if line.startswith("planner: ")]
        rest = [line for line in lines if line not in said]
        return Answer(int(end.value.code or 0), out, "".join(rest), "".join(said))

    return run
