"""Checkpoints of workers: always of a finished step, for any number of workers, for PyTorch alone, and safe to load."""

import errno
import hashlib
import json
import os
import pickle
import resource
import shutil
import signal
import threading
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from worker_processes import worker_processes

import planner
from planner.errors import StowageError
from planner.run import WorkerFailedError, load_checkpoint, run_workers
from planner.run.checkpoint import folder as folder_module
from planner.run.checkpoint import metadata
from planner.step import AdamW, TrainStep
from tests.run.workers.steps import assert_close, classifier, loader, partition, same, state_of


class Attention(nn.Module):
    """Its queries, keys and values are one matrix, of which workers have several boxes each; two names, one tensor."""

    def __init__(self):
        super().__init__()
        self.table, self.qkv, self.scores = (
            nn.Embedding(9, 12),
            nn.Linear(12, 36, bias=False),
            nn.Linear(12, 9, bias=False),
        )
        self.scores.weight = self.table.weight
        self.register_buffer("mask", torch.tril(torch.ones(5, 5, dtype=torch.bool)), persistent=False)
        self.drop = nn.Dropout(0.2)

    def forward(self, words):
        x = self.table(words)
        q, k, v = (part.unflatten(-1, (4, 3)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        weights = (q @ k.transpose(-1, -2)).masked_fill(~self.mask, -1e9).softmax(-1)
        return self.scores(self.drop((weights @ v).transpose(1, 2).flatten(2)))


def attention(*, scheduled=True):
    torch.manual_seed(0)
    model = Attention().double()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    words = torch.randint(9, (4, 5))
    return TrainStep(
        model, (words, words.roll(-1)), optimizer=optimizer,
        loss=lambda model, batch: nn.functional.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten()),
        scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5) if scheduled else None,
    )  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A checkpoint after 3 steps on 2 workers, the state then, and the losses and the state 2 steps later."""
    folder = tmp_path_factory.mktemp("checkpoints") / "kept"
    step = attention()
    parts = partition(step, 2)
    torch.manual_seed(7)
    first = run_workers(step, parts, steps=3, checkpoint=folder, progress=False).wait()
    state, drawn = state_of(step), torch.get_rng_state()
    later = run_workers(step, parts, steps=2, progress=False).wait()
    return folder, state, drawn, (first.losses, later.losses), step


def test_the_same_workers_go_on_with_the_same_bits_and_others_with_the_same_numbers(trained):
    folder, state, drawn, (_, losses), went_on = trained
    for workers in (2, 3, 1):
        step = attention()
        torch.manual_seed(0)
        assert load_checkpoint(step, folder) == step.materialize().steps == 3
        assert same(state_of(step), state)
        assert torch.equal(torch.get_rng_state(), drawn)
        if workers == 1:
            assert [float(step.eager()) for _ in range(2)] == pytest.approx(losses, rel=1e-12)
        else:
            found = run_workers(step, partition(step, workers), steps=2, progress=False).wait().losses
            assert found == (losses if workers == 2 else pytest.approx(losses, rel=1e-12))
        if workers == 2:
            assert same(state_of(step), state_of(went_on))
        assert_close(step, went_on)
        assert step.torch_optimizer.param_groups[0]["lr"] == 0.0125
        assert step.scheduler.last_epoch == 5


def test_a_step_without_the_scheduler_is_refused_and_stays_as_it_is(trained):
    step = attention(scheduled=False)
    before = state_of(step)
    with pytest.raises(StowageError, match="it has a learning-rate scheduler, and the step has none; make the step"):
        load_checkpoint(step, trained[0])
    assert same(state_of(step), before)
    assert step.materialize().steps == 0


def test_pytorch_alone_loads_it(trained, tmp_path):
    folder, state, *_ = trained
    model = attention().materialize().model
    dcp.load({"model": model.state_dict()}, checkpoint_id=folder)
    assert all(torch.equal(value, state[f"model/{name}"]) for name, value in model.named_parameters())
    dcp_to_torch_save(folder, tmp_path / "whole.pt")
    whole = torch.load(tmp_path / "whole.pt")
    fresh = attention().materialize().model
    fresh.load_state_dict(whole["model"])
    assert all(
        torch.equal(*pair) for pair in zip(fresh.state_dict().values(), model.state_dict().values(), strict=True)
    )
    assert torch.equal(whole["optimizer"]["qkv.weight"]["exp_avg"], state["optimizer/qkv.weight/exp_avg"])
    assert whole["training"]["steps"] == 3


def test_each_element_is_written_once_and_each_worker_writes_its_part(trained):
    folder = trained[0]
    metadata = dcp.FileSystemReader(folder).read_metadata()
    for kept in metadata.state_dict_metadata.values():
        seen = torch.zeros(tuple(kept.size))
        for chunk in kept.chunks:
            seen[tuple(slice(first, first + size) for first, size in zip(chunk.offsets, chunk.sizes, strict=True))] += 1
        assert (seen == 1).all()
    assert len(metadata.state_dict_metadata["model.qkv.weight"].chunks) == 6  # three of each worker: it has heads
    sizes = {each.name: each.stat().st_size for each in folder.glob("step-3/*.distcp")}
    assert sizes.keys() == {"__0_0.distcp", "__1_0.distcp", "__2_0.distcp"}
    assert max(sizes.values()) < 0.7 * sum(sizes.values())


def test_a_loop_over_batches_writes_checkpoints_too(tmp_path):
    step = classifier(AdamW(lr=1e-2), dropout=0.3)
    run = run_workers(
        step, partition(step, 2), steps=0, checkpoint=tmp_path, checkpoint_every=2, progress=False
    )  # fmt: skip
    states = [state_of(step) for _ in run.steps(loader(3))]
    assert [each.name for each in tmp_path.iterdir() if each.is_dir()] == ["step-3"]
    run.close()
    other = classifier(AdamW(lr=1e-2), dropout=0.3)
    assert load_checkpoint(other, tmp_path) == 3
    assert same(state_of(other), states[-1])


def killed_when(word, signal_sent=signal.SIGKILL):
    """Progress that kills a worker, once, when it says a word."""
    acted = threading.Event()

    def progress(_share, doing):
        if doing.startswith(word) and not acted.is_set():
            acted.set()
            os.kill(worker_processes()[1], signal_sent)

    return progress


def test_a_failure_says_what_is_on_the_disk_and_how_to_go_on(tmp_path):
    step, folder = classifier(), tmp_path / "new" / "folder"
    parts, before = partition(step, 2), state_of(step)
    with pytest.raises(WorkerFailedError, match="worker 1 has ended unexpectedly; all workers were ended") as failed:
        run_workers(
            step, parts, steps=9, checkpoint=folder, checkpoint_every=2, progress=killed_when("step 6 of")
        ).wait()
    said = f"; the state after step 4 is in {folder}: load it with planner.run.load_checkpoint(step, {str(folder)!r}), "
    assert said in str(failed.value)
    assert same(before, state_of(step))
    assert load_checkpoint(step, folder) == 4
    eager = classifier()
    for _ in range(4):
        eager.eager()
    assert_close(step, eager)
    with pytest.raises(WorkerFailedError, match=r"no checkpoint was in .* yet"):
        run_workers(step, parts, steps=9, checkpoint=tmp_path / "other", progress=killed_when("step 1 of")).wait()


def test_what_fails_after_a_checkpoint_is_in_place_leaves_it_there(tmp_path, monkeypatch):
    synced, sync = [], metadata.sync_folder

    def fails_once(folder):
        synced.append(folder)
        if len(synced) == 3:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(folder)

    monkeypatch.setattr(metadata, "sync_folder", fails_once)
    step = classifier()
    run = run_workers(step, partition(step, 2), steps=9, checkpoint=tmp_path, checkpoint_every=1, progress=False)
    with pytest.raises(
        StowageError, match=r"after step 3 cannot be written .*: Input/output error; .*after step 3 is in"
    ):
        run.wait()
    again = classifier()
    assert load_checkpoint(again, tmp_path) == 3
    assert same(state_of(again), state_of(step))


def test_ctrl_c_while_a_checkpoint_is_put_in_place_lets_the_run_go_on(tmp_path, monkeypatch):
    written, write = [], folder_module.write_metadata

    def interrupted(*given):
        write(*given)
        written.append(given)
        if len(written) == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(folder_module, "write_metadata", interrupted)
    step = classifier()
    run = run_workers(step, partition(step, 2), steps=0, checkpoint=tmp_path, checkpoint_every=1, progress=False)
    with pytest.raises(KeyboardInterrupt):
        list(run.steps(loader(9)))
    assert step.materialize().steps == 2
    list(run.steps(loader(2)))
    run.close()
    assert load_checkpoint(classifier(), tmp_path) == 4


def test_a_disk_that_is_full_ends_the_run_and_keeps_its_steps(tmp_path):
    step, eager = classifier(), classifier()

    def full(_share, doing):
        if doing.startswith("step 4 of"):
            for process in worker_processes():
                resource.prlimit(process, resource.RLIMIT_FSIZE, (4096, 4096))

    with pytest.raises(StowageError, match=r"after step 4 cannot be written to .*: worker 0 .*File too large"):
        run_workers(
            step, partition(step, 2), steps=9, checkpoint=tmp_path, checkpoint_every=1, progress=full
        ).wait()  # fmt: skip
    for _ in range(4):
        eager.eager()
    assert_close(step, eager)
    assert load_checkpoint(classifier(), tmp_path) == 3


@pytest.fixture
def copied(trained, tmp_path):
    """A copy of the checkpoint."""
    return shutil.copytree(trained[0], tmp_path / "copy")


def part(folder):
    return folder / "step-3" / "__0_0.distcp"


def shorten(folder):
    part(folder).write_bytes(part(folder).read_bytes()[:1000])


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/evil",)


def test_what_is_wrong_with_a_folder_is_said_in_a_sentence_and_nothing_is_changed(copied, tmp_path):
    step = attention()
    before, drawn = state_of(step), torch.get_rng_state()
    metadata = copied / ".metadata"
    whole = metadata.read_bytes()
    outside = whole.replace(b"step-3/__0_0.distcp", b"../../../__0.distcp")
    assert len(outside) == len(whole) != whole.count(b"step-3/__0_0")
    for spoil, said in (
        (lambda: shorten(copied), "a part of the checkpoint .* is missing or damaged"),
        (lambda: part(copied).unlink(), "missing or damaged .*__0_0.distcp: No such file"),
        (lambda: metadata.write_bytes(whole[:500]), "no checkpoint that can be loaded"),
        (lambda: metadata.write_bytes(pickle.dumps(Evil())), r"it names posix\.system"),
        (lambda: metadata.write_bytes(pickle.dumps([1])), "it holds something else"),
        (lambda: metadata.write_bytes(outside), r"it refers to \.\./\.\./\.\./__0\.distcp, which is outside"),
        (metadata.unlink, r"is no checkpoint: its file \.metadata cannot be read \(No such file or directory\)"),
    ):
        spoil()
        with pytest.raises(StowageError, match=said) as refused:
            load_checkpoint(step, copied)
        assert "\n" not in str(refused.value)
    assert same(before, state_of(step))
    assert torch.equal(drawn, torch.get_rng_state())
    assert not Path("/tmp/evil").exists()


def test_a_checkpoint_of_another_model_is_refused_by_its_first_tensor(trained, tmp_path):
    folder = trained[0]
    with pytest.raises(StowageError, match=r"of another model or optimizer: it has no model/0\.weight"):
        load_checkpoint(classifier(), folder)
    wider = attention()
    wider.materialize().model.qkv.weight.data = torch.zeros(36, 10, dtype=torch.float64)
    with pytest.raises(StowageError, match=r"model/qkv.weight has shape \(36, 12\) in it and \(36, 10\) in the step"):
        load_checkpoint(wider, folder)
    single = attention()
    single.materialize().model.float()
    with pytest.raises(StowageError, match=r"has dtype torch.float64 in it and torch.float32 in the step"):
        load_checkpoint(single, folder)
    model = attention().materialize().model
    inference = planner.InferenceStep(model, (torch.randint(9, (4, 5)),))
    with pytest.raises(StowageError, match=r"the step has no optimizer\."):
        load_checkpoint(inference, folder)
    dcp.save({"model": model.state_dict()}, checkpoint_id=tmp_path, no_dist=True)
    with pytest.raises(StowageError, match="does not say how many steps were made"):
        load_checkpoint(attention(), tmp_path)


def test_folders_that_cannot_be_written_to_are_refused_before_a_worker_is_started(trained, tmp_path):
    step = attention()
    parts = partition(step, 2)
    (tmp_path / "file").write_text("")
    (tmp_path / "mine.txt").write_text("")
    for folder, said in (
        (tmp_path / "file", "no checkpoint can be written to .*: File exists; choose another folder"),
        (tmp_path / "file" / "below", "Not a directory"),
        (tmp_path, "has other files in it, such as file; choose another folder"),
        (trained[0], "has a checkpoint of step 3, and Attention has made 0: load it first"),
    ):
        with pytest.raises(StowageError, match=said):
            run_workers(step, parts, checkpoint=folder, progress=False)
    with pytest.raises(StowageError, match="checkpoint_every must be a number of steps, at least 1, got 0"):
        run_workers(step, parts, checkpoint=tmp_path / "new", checkpoint_every=0)
    with pytest.raises(StowageError, match="give checkpoint too"):
        run_workers(step, parts, checkpoint_every=3)
    assert worker_processes() == []


def test_a_tensor_of_which_a_part_is_not_listed_is_refused(trained, tmp_path):
    folder = shutil.copytree(trained[0], tmp_path / "copy")
    metadata = dcp.FileSystemReader(folder).read_metadata()
    metadata.state_dict_metadata["model.qkv.weight"].chunks.pop()
    changed = pickle.dumps(metadata)
    (folder / ".metadata").write_bytes(changed)
    step = attention()
    before = state_of(step)
    with pytest.raises(StowageError, match=r"damaged \(the metadata are not those that were written\)"):
        load_checkpoint(step, folder)
    (checksums,) = folder.glob("step-*/checksums.json")
    noted = json.loads(checksums.read_text()) | {"metadata": hashlib.blake2b(changed).hexdigest()}
    checksums.write_text(json.dumps(noted))
    with pytest.raises(StowageError, match=r"a part of model\.qkv\.weight is missing from the checkpoint"):
        load_checkpoint(step, folder)
    assert same(state_of(step), before)


def test_one_bit_that_has_changed_on_the_disk_is_noticed(trained, tmp_path):
    folder = shutil.copytree(trained[0], tmp_path / "copy")
    part = next(folder.glob("step-*/__1_0.distcp"))
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    part.write_bytes(data)
    step = attention()
    before = state_of(step)
    with pytest.raises(StowageError, match=r"missing or damaged \(__1_0\.distcp is not as it was written\)"):
        load_checkpoint(step, folder)
    assert same(state_of(step), before)


def test_two_runs_do_not_write_to_one_folder(tmp_path):
    first, second = attention(), attention()
    parts = partition(first, 2)
    one, other = (
        run_workers(step, parts, steps=0, checkpoint=tmp_path, checkpoint_every=1) for step in (first, second)
    )
    batch = first.batch
    next(iter(one.steps([batch])))
    kept = state_of(first)
    with pytest.raises(StowageError, match=r"another run writes checkpoints to .*; give each run a folder of its own"):
        list(other.steps([batch]))
    loaded = attention()
    assert load_checkpoint(loaded, tmp_path) == 1
    assert same(state_of(loaded), kept)
    one.close()
    other.close()


class Scaled(nn.Linear):
    """Has a number in its state that is no tensor."""

    def get_extra_state(self):
        return {"scale": 2.0}


def test_state_that_is_no_tensor_is_not_lost_without_a_word(tmp_path):
    step = classifier()
    step.materialize().model[0].__class__ = Scaled
    with pytest.raises(StowageError, match=r"Scaled 0 has extra state \(get_extra_state\), which checkpoints"):
        run_workers(step, partition(step, 2), steps=1, checkpoint=tmp_path, progress=False).wait()
