"""What the ranks of a launch do in these tests, each in its own process, as a user's script would."""

import errno
import hashlib
import os
import runpy
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

import planner
from planner.errors import StowageError
from planner.partition import partition_from_json
from planner.run.workers import rank_team
from planner.run.workers.launch import rank_folder
from planner.step import TrainStep


def network(seed=0, width=24, lr=1e-2, dropout=0.0):
    """A step that is the same in every process that makes it with the same arguments."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(12, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, 6)).double()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    torch.manual_seed(7)
    batch = torch.randn(12, 12, dtype=torch.float64), torch.randint(6, (12,))
    return TrainStep(
        model, batch, loss=lambda model, batch: nn.functional.cross_entropy(model(batch[0]), batch[1]),
        optimizer=optimizer,
    )  # fmt: skip


def batches(count, seed=3):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        yield (
            torch.randn(12, 12, dtype=torch.float64, generator=generator),
            torch.randint(6, (12,), generator=generator),
        )


def bits(step):
    digest = hashlib.sha256()
    for key, value in sorted(step.state().items()):
        digest.update(key.encode() + value.detach().numpy().tobytes())
    return digest.hexdigest()


def outcome(step, result):
    difference = result.difference
    return {
        "losses": [loss.hex() for loss in result.losses],
        "bits": bits(step),
        "bytes": [result.bytes_counted, result.bytes_predicted],
        "peaks": [result.peak_bytes, result.planned_peak_bytes],
        "difference": None if difference is None else [difference.relative, difference.noise],
        "transport": result.transport,
    }


def agreeing(rank, parts, budget):
    step = network(dropout=0.3)
    torch.manual_seed(11)
    result = planner.run_workers(
        step, partition_from_json(parts), budget=budget, batches=batches(3), check=True, progress=False
    ).wait()
    return outcome(step, result)


def going_on(rank, parts):
    """A run for one loop after another, between which the model is used."""
    step = network()
    run = planner.run_workers(step, partition_from_json(parts), steps=0, progress=False)
    losses = list(run.steps(batches(2)))
    middle = bits(step)
    losses += list(run.steps(batches(1, seed=4)))
    run.close()
    return {"losses": [loss.hex() for loss in losses], "bits": [middle, bits(step)]}


def disagreeing(rank, parts, others, foreign):
    """One misunderstanding after another; what each says here, and a run that is right after all of them."""
    said = {}

    def attempt(name, step, partition=parts, **settings):
        before = bits(step)
        try:
            planner.run_workers(step, partition_from_json(partition), progress=False, **settings).wait()
            said[name] = "nothing"
        except (StowageError, OSError) as error:
            said[name] = str(error) if bits(step) == before else f"changes the model, and says {error}"

    other = rank == 1
    attempt("partitions", network(), others[rank])
    attempt("workers", network(), foreign["workers"])
    attempt("graph", network(), foreign["graph"])
    attempt("steps", network(), steps=2 + rank)
    attempt("structure", network(width=24 + other))
    attempt("values", network(seed=rank))
    attempt("batches", network(), batches=batches(2, seed=rank))
    attempt("fewer", network(), batches=batches(2 - rank))
    attempt("rates", network(lr=0.01 * (1 + rank)))
    attempt("broken", network(), batches=broken() if other else batches(2))
    step = network(dropout=0.3)
    torch.manual_seed(rank)
    attempt("draws", step, foreign["dropout"])
    torch.set_default_dtype(torch.float64 if other else torch.float32)
    attempt("settings", network())
    torch.set_default_dtype(torch.float32)
    true, torch.__version__ = torch.__version__, "2.11.0" if other else "2.13.0"
    attempt("version", network())
    torch.__version__ = true
    attempt("nothing", network())
    return said


def broken():
    yield next(batches(1))
    raise OSError("the disk is gone")


def endless(rank, parts, folder):
    """Steps until another rank is lost; leaves a file once some are made, and returns what is said in the end."""
    step = network()
    before = bits(step)
    run = planner.run_workers(step, partition_from_json(parts), steps=1_000_000, progress=False)
    while len(run.worker_steps) < 3 and run.progress.state == "running":
        time.sleep(0.02)
    Path(folder, str(rank)).touch()
    try:
        run.wait()
    except StowageError as error:
        return [str(error), bits(step) == before]
    return None


def interrupted(rank, parts, folder):
    """Waits for steps, or makes them in a loop, until Ctrl-C; what that would end a script with, and the model."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    step, found = network(), []

    def reached():
        Path(folder, f"{rank} {len(found)}").touch()

    def waits():
        run = planner.run_workers(
            step, partition_from_json(parts), steps=1_000_000,
            progress=lambda _, doing: reached() if doing.startswith("step 3 of") else None,
        )  # fmt: skip
        run.wait()

    def loops():
        run = planner.run_workers(step, partition_from_json(parts), steps=0, progress=False)
        for _ in run.steps(noted()):
            pass

    def noted():
        """Batches; the 66th is far from the next step before which the model's code is captured again."""
        for number, batch in enumerate(batches(1_000_000), 1):
            if number == 66:
                reached()
            yield batch

    for makes_steps in (waits, loops):
        before = bits(step)
        try:
            makes_steps()
        except KeyboardInterrupt as error:
            assert isinstance(error, SystemExit)  # noqa: PT017 this is no test
            found.append([error.code, bits(step) != before])
    return found


def host(number, folders, arguments):
    """What `torchrun` does on a host, in a folder of its own; only its rank is a fork and loads nothing again."""
    from torch.distributed.launcher.api import elastic_launch
    from torch.distributed.run import config_from_args, parse_args

    os.chdir(folders[number])
    for stream, name in ((1, "said"), (2, "complained")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), stream)
    tempfile.tempdir = None  # as TMPDIR says from now on
    for variable, name in (("TMPDIR", "temporary"), ("XDG_CACHE_HOME", "cache")):
        Path(name).mkdir()
        os.environ[variable] = str(Path(name).absolute())
    config, program, command = config_from_args(parse_args(["--node-rank", str(number), *arguments]))
    assert program == sys.executable
    elastic_launch(replace(config, start_method="fork"), as_python)(*command)
    return "done"


def as_python(*command):
    """What `python -u -m NAME ...` does."""
    unbuffered, module, name, *rest = command
    assert (unbuffered, module) == ("-u", "-m")
    sys.argv = [name, *rest]
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"ended with {end.code}") from end
    sys.stdout.flush()


def checkpointed(rank, parts, folders):
    """Five steps, in two ways, with a checkpoint in between, which a second launch goes on from."""
    step = network(dropout=0.3)
    torch.manual_seed(11)
    if Path(folders[rank], ".metadata").exists():
        planner.run.load_checkpoint(step, folders[rank])
    given = {"checkpoint": folders[rank], "progress": False}
    planner.run_workers(step, partition_from_json(parts), steps=2, **given).wait()
    run = planner.run_workers(step, partition_from_json(parts), steps=0, checkpoint_every=2, **given)
    losses = list(run.steps(batches(2)))
    run.close()  # the ranks leave each other, and meet again
    losses += run.steps(batches(1, seed=5))
    run.close()
    return {"losses": [loss.hex() for loss in losses], "bits": bits(step)}


def badly_checkpointed(rank, parts, folders, fault):
    """What is said where a rank cannot write, and how many steps the model has made."""
    step, write_part = network(), rank_team.write_part

    def full(folder, *arguments):
        if "step-3" in str(folder) and rank == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_part(folder, *arguments)

    if fault == "full":
        rank_team.write_part = full
    if fault == "elsewhere" and rank == 1:  # what another host's folder of this name would be
        rank_folder._SEEN_SECONDS = 0.1
        rank_folder._MARK = "not there"
    try:
        planner.run_workers(
            step, partition_from_json(parts), steps=9, checkpoint=folders[rank], checkpoint_every=1, progress=False
        ).wait()
    except StowageError as error:
        return str(error), step.materialize().steps
    return None


def killed(rank, parts, folder):
    """Steps until another rank is lost, which is between the rename of a checkpoint and the word that it is done."""
    made, commit = [], rank_folder.RankFolder.commit

    def lost(*given):
        made.append(given)
        if rank == 1 and len(made) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        commit(*given)

    rank_folder.RankFolder.commit = lost
    try:
        planner.run_workers(
            network(), partition_from_json(parts), steps=1_000_000, checkpoint=folder, checkpoint_every=1,
            progress=False,
        ).wait()  # fmt: skip
    except StowageError as error:
        return str(error)
    return None


SCENARIOS = {
    each.__name__: each
    for each in (
        agreeing, going_on, disagreeing, endless, interrupted, host, checkpointed, badly_checkpointed, killed
    )
}  # fmt: skip
