"""When a run on workers writes checkpoints, and what the last one was."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

from torch import Tensor, nn

from planner.errors import StowageError, first_line
from planner.run.checkpoint import names
from planner.run.checkpoint.folder import CheckpointFolder
from planner.run.checkpoint.load import GENERATOR, saved_steps
from planner.run.workers.launch.rank_folder import RankFolder
from planner.run.workers.team import Team
from planner.step import Step, training_progress

#: Share of the time that writing takes at most, if it is not said how often to write.
_MOST_TIME = 0.05


class Checkpoints:
    """Writes the state of workers to a folder from time to time.

    Args:
        folder: where to.
        every: after how many steps of the run; None for as often as it takes at most a twentieth of the time.
        step: whose state it is.
    """

    def __init__(self, folder: CheckpointFolder | RankFolder, every: int | None, step: Step) -> None:
        self._folder, self._every, self._step = folder, every, step
        self._since, self._took = perf_counter(), 0.0
        self._unwritten = 0

    @property
    def sentence(self) -> str:
        """What is on the disk, and how to go on from it."""
        path = self._folder.path
        try:
            steps = saved_steps(path)
        except StowageError:
            return f"no checkpoint was in {path} yet"
        return (
            f"the state after step {steps} is in {path}: load it with planner.run.load_checkpoint(step, "
            f"{str(path)!r}), and run again"
        )

    def refuse_extra_state(self) -> None:
        """Refuse a model that has more state than tensors, which would be lost.

        Raises:
            StowageError: one of its modules has.
        """
        for name, module in self._step.materialize().model.named_modules():
            if type(module).get_extra_state is not nn.Module.get_extra_state:
                raise StowageError(
                    f"{type(module).__name__} {name} has extra state (get_extra_state), which checkpoints of workers "
                    "do not have: keep it in buffers, or save step.materialize().model.state_dict() yourself"
                )

    def after_step(self, team: Team, live: Mapping[str, Tensor], ahead: int, drawn: Tensor) -> None:
        """Write a checkpoint if it is time to.

        Args:
            team: has made a step.
            live: the state that was loaded, by key.
            ahead: how many steps the workers have made that the step does not count yet.
            drawn: the state of the generator now.

        Raises:
            StowageError: it cannot be written; the one before is still there.
        """
        self._unwritten += 1
        if self._every is None:
            due = perf_counter() - self._since >= self._took * (1 / _MOST_TIME - 1)
        else:
            due = self._unwritten >= self._every
        if self._folder.is_due(due):
            self.write(team, live, ahead, drawn)

    def write(self, team: Team, live: Mapping[str, Tensor], ahead: int, drawn: Tensor) -> None:
        """Write a checkpoint if the last one is older than the last step; as `after_step`."""
        if not self._unwritten:
            return
        begun = perf_counter()
        training = {**training_progress(self._step, ahead), GENERATOR: drawn}
        steps = int(training["steps"])
        parts = None
        try:
            parts = self._folder.begin(steps)
            self._write(parts, team, live, training)
        except (OSError, RuntimeError) as error:
            if parts is not None:
                self._folder.discard(parts)
            why = getattr(error, "strerror", None) or first_line(error)
            raise StowageError(
                f"the checkpoint after step {steps} cannot be written to {self._folder.path}: {why}; free some space, "
                f"or choose another folder; {self.sentence}"
            ) from error
        finally:
            self._folder.end()
        self._unwritten = 0
        self._since = perf_counter()
        self._took = self._since - begun

    def _write(self, parts: Path, team: Team, live: Mapping[str, Tensor], training: dict[str, Tensor]) -> None:
        model = self._step.materialize().model
        places = names.places(live, model)
        whole = {f"{names.TRAINING}/{name}": value for name, value in training.items()}
        places |= {key: (names.TRAINING, name) for key, name in zip(whole, training, strict=True)}
        whole |= {key: live[key] for key in live.keys() - {each.key for owned in team.owned for each in owned}}
        dtypes = {key: value.dtype for key, value in {**live, **whole}.items()}
        found = team.save(parts, {key: names.name_of(place) for key, place in places.items()})
        self._folder.commit(parts, team.owned, found, whole, dtypes, places, names.aliases(live, model))
