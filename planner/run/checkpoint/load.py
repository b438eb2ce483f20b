"""Loading a checkpoint into a step, whatever the number of workers was or will be."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load

from planner.cancel import CancelToken, uninterrupted
from planner.errors import StowageError, first_line, given_type
from planner.global_state_lock import global_state_lock
from planner.guards import undisturbed
from planner.run.checkpoint import names
from planner.run.checkpoint.folder import CheckpointFolder
from planner.run.checkpoint.reader import SafeReader
from planner.run.checks.eager_reference import same_bits
from planner.run.checks.ownership_lock import OwnershipLock
from planner.step import Step, progress_mismatch, restore_training_progress

#: In the section of training, the state of PyTorch's generator.
GENERATOR = "generator"


def load_checkpoint(step: Step, folder: str | os.PathLike[str]) -> int:
    """Put a checkpoint of `planner.run_workers` into a step: its model, its optimizer, and how far its training is.

    Whole tensors are put together, whatever the number of workers was, so the step can go on with any number of them,
    in `planner.run` or in eager PyTorch. Learning-rate schedules continue, and so does PyTorch's generator, whose state
    is set. If anything is wrong, nothing is changed. Nothing in the folder is executed: the metadata may name nothing
    but DCP's own records, and tensors are read by `torch.load(weights_only=True)`.

    Args:
        step: of the same model, with the same kind of optimizer.
        folder: of the checkpoint.

    Returns:
        How many steps had been made.

    Raises:
        StowageError: the folder has no checkpoint, or not all of its files, it is of another model or optimizer, or the
            step is being run.
    """
    if not isinstance(step, Step):
        raise StowageError(f"{given_type(step)} has no state to load into: give a TrainStep or an InferenceStep")
    owned, stop = OwnershipLock(step, CancelToken()), CancelToken()
    for other in owned.make(stop):
        other.ended.wait()
    try:
        with global_state_lock():
            return _load(step, Path(folder))
    finally:
        owned.end()


@undisturbed()
def _load(step: Step, folder: Path) -> int:
    reader = SafeReader(folder)
    step.complete()
    live = step.state()
    model = step.materialize().model
    places = names.places(live, model)
    training = _training(folder, reader.read_metadata())
    found = {key: torch.empty_like(value) for key, value in live.items()}
    wanted = {names.name_of(places[key]): value for key, value in found.items()}
    keys = dict(zip(wanted, live, strict=True))
    _refuse_other(folder, reader.read_metadata(), live, keys, set(map(names.name_of, names.aliases(live, model))))
    reader.verify()
    known = {names.name_of((names.TRAINING, name)): value for name, value in training.items()}
    _read(folder, reader, {**wanted, **known})
    if differs := progress_mismatch(step, training):
        raise _other(folder, differs)
    with uninterrupted(), torch.no_grad():
        for key, value in live.items():
            if not same_bits(value, found[key]):  # momentum that no step has written to is known by not being written
                value.copy_(found[key])
        restore_training_progress(step, training)
        torch.set_rng_state(training[GENERATOR])
        step.settle()
    return step.materialize().steps


def folder_for(step: Step, path: Path) -> CheckpointFolder:
    """The folder for checkpoints of a step, which must not have one of a later step.

    Args:
        step: as it is when the run begins.
        path: of the folder.

    Raises:
        StowageError: it has, or it cannot be written to.
    """
    folder = CheckpointFolder(path)
    made = 0 if step.live is None else step.live.steps
    if folder.has_checkpoint() and (saved := saved_steps(path)) > made:
        raise StowageError(
            f"{path} has a checkpoint of step {saved}, and {step.name} has made {made}: load it first with "
            "planner.run.load_checkpoint, or choose another folder"
        )
    return folder


def saved_steps(folder: Path) -> int:
    """How many steps had been made when a checkpoint was written.

    Raises:
        StowageError: the folder has none that can be read.
    """
    reader = SafeReader(folder)
    steps = _training(folder, reader.read_metadata())["steps"]
    _read(folder, reader, {names.name_of((names.TRAINING, "steps")): steps})
    return int(steps)


def _read(folder: Path, reader: SafeReader, into: dict[str, Tensor]) -> None:
    """Read tensors into memory that is there."""
    there = reader.read_metadata().state_dict_metadata
    for name, value in into.items():
        kept = there[name]
        # DCP would leave memory as it is where no part is
        if not isinstance(kept, TensorStorageMetadata) or not _is_whole(kept.chunks, value):
            raise StowageError(f"a part of {name} is missing from the checkpoint {folder}; take another copy")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # says that one process loads
            load(into, storage_reader=reader, planner=DefaultLoadPlanner(flatten_state_dict=False), no_dist=True)
    except BaseException as error:  # what DCP raises is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise StowageError(
            f"a part of the checkpoint {folder} is missing or damaged ({_cause(error)}); take another copy"
        ) from error


def _is_whole(chunks: Sequence[ChunkStorageMetadata], value: Tensor) -> bool:
    """Whether parts, each of which is inside a tensor, make up all of it."""
    spans = [[*zip(chunk.offsets, chunk.sizes, strict=True)] for chunk in chunks]
    inside = all(
        len(each) == value.dim()
        and all(min(at, size) >= 0 and at + size <= n for (at, size), n in zip(each, value.shape, strict=True))
        for each in spans
    )
    apart = all(
        any(a + n <= b or b + m <= a for (a, n), (b, m) in zip(one, other, strict=True))
        for one, other in combinations(spans, 2)
    )
    return inside and apart and sum(math.prod(size for _, size in each) for each in spans) == value.numel()


def _training(folder: Path, metadata: Metadata) -> dict[str, Tensor]:
    """Memory for what says how far training was."""
    begin = f"{names.TRAINING}."
    found = {
        name.removeprefix(begin): torch.empty(tuple(one.size), dtype=one.properties.dtype)
        for name, one in metadata.state_dict_metadata.items()
        if name.startswith(begin) and isinstance(one, TensorStorageMetadata)
    }
    if not {"steps", GENERATOR} <= found.keys():
        raise StowageError(
            f"{folder} does not say how many steps were made, so planner.run_workers has not written it: load it with "
            "torch.distributed.checkpoint"
        )
    return found


def _refuse_other(
    folder: Path, metadata: Metadata, live: Mapping[str, Tensor], keys: Mapping[str, str], others: Collection[str]
) -> None:
    """Refuse a checkpoint of another model, naming the first tensor that differs.

    Args:
        folder, metadata: of the checkpoint.
        live: the state by key.
        keys: by name in the checkpoint.
        others: further names that the model has for the same tensors.
    """
    there = metadata.state_dict_metadata
    for name, key in keys.items():
        kept = there.get(name)
        if not isinstance(kept, TensorStorageMetadata):
            raise _other(folder, f"it has no {key}")
        ours, dtype = tuple(live[key].shape), live[key].dtype
        if tuple(kept.size) != ours:
            raise _other(folder, f"{key} has shape {tuple(kept.size)} in it and {ours} in the step")
        if kept.properties.dtype != dtype:
            raise _other(folder, f"{key} has dtype {kept.properties.dtype} in it and {dtype} in the step")
    for name in there:
        if name not in keys and name not in others and not name.startswith(f"{names.TRAINING}."):
            raise _other(folder, f"the step has no {name}")


def _other(folder: Path, why: str) -> StowageError:
    return StowageError(
        f"the checkpoint {folder} is of another model or optimizer: {why}; make the step as it was when it was written"
    )


def _cause(error: BaseException) -> str:
    """What went wrong, from DCP's record of what failed on which process."""
    failures = getattr(error, "failures", None)
    if failures:
        error = next(iter(failures.values()))[0]
    if isinstance(error, StowageError):
        return first_line(error)
    strerror = getattr(error, "strerror", None)
    if strerror:
        return f"{Path(str(getattr(error, 'filename', ''))).name}: {strerror}"
    return f"{type(error).__name__}: {first_line(error) if isinstance(error, Exception) else ''}"
