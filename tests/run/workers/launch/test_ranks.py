"""Ranks of PyTorch's launcher run a partition as one process with its workers would, or say why they cannot."""

import os
import re
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

import pytest
import torch

import planner
from planner.capture import capture
from planner.errors import StowageError
from planner.partition import PartitionPlan, coarsen, optimize, partition_to_json
from tests.run.workers.launch.scenarios import batches, bits, network, outcome


def partition(step, workers):
    return PartitionPlan.of(optimize(coarsen(capture(step, progress=False)), workers))


def until(condition, seconds=120):
    """Wait for something; returns whether it has come about."""
    for _ in range(seconds * 20):
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_ranks_leave_the_bits_that_workers_of_one_process_leave(launcher):
    parts = partition(network(dropout=0.3), 2)
    ranks = launcher.launch("agreeing", 2, partition_to_json(parts), "80%")
    step = network(dropout=0.3)
    torch.manual_seed(11)
    forked = outcome(step, planner.run_workers(step, parts, batches=batches(3), progress=False).wait())
    assert ranks[0] == ranks[1]
    assert ranks[0]["transport"] == "TCP"
    assert all(ranks[0][name] == forked[name] for name in ("losses", "bits", "bytes"))
    assert ranks[0]["bytes"][0] == ranks[0]["bytes"][1] > 0
    assert ranks[0]["peaks"][0] == ranks[0]["peaks"][1]
    relative, noise = ranks[0]["difference"]
    assert relative < 1e-11
    assert relative <= 30 * noise


SAID = {
    "partitions": "rank 1's partition is not the same as rank 0's: save it to a file, copy that to every host and load",
    "workers": "the launcher's world size is 2, and the partition is for 3 workers: start 3 ranks, take a partition",
    "graph": "the partition plan is for another graph",
    "steps": "rank 1's number of steps is 3, and rank 0's is 2: call planner.run_workers with the same on all ranks",
    "structure": "rank 1's step is not the same as rank 0's: build the same model, loss, batch shapes and optimizer",
    "values": "rank 1's model/0.weight is not the same as rank 0's: seed the ranks alike (torch.manual_seed) or load",
    "batches": "rank 1's batch of step 1 is not the same as rank 0's: each rank takes the whole batch and cuts out its",
    "fewer": "rank 1's next task is to bring the state back, and rank 0's is to make step 2: all ranks must",
    "rates": "rank 1's learning rate or another number of step 1 is not the same as rank 0's",
    "draws": "rank 1's random generator before step 1 is not the same as rank 0's: seed the ranks alike",
    "settings": "rank 1's settings of PyTorch",
    "version": "rank 1's version of PyTorch is 2.11.0, and rank 0's is 2.13.0: install the same on every host",
    "nothing": "nothing",
}


def test_whatever_ranks_disagree_about_is_said_at_all_of_them_and_changes_no_model(launcher):
    parts, wider = partition(network(), 2), network(width=31)
    foreign = {
        "workers": partition_to_json(partition(network(), 3)),
        "graph": partition_to_json(partition(wider, 2)),
        "dropout": partition_to_json(partition(network(dropout=0.3), 2)),
    }
    here = partition_to_json(parts)
    others = [
        here,
        partition_to_json(PartitionPlan.of(optimize(coarsen(capture(network(), progress=False)), 2), seed=1)),
    ]
    first, second = launcher.launch("disagreeing", 2, here, others, foreign)
    assert first.pop("broken").startswith(
        "rank 1's next task is to bring the state back after OSError: the disk is gone, and rank 0's is to make step 2"
    )
    assert second.pop("broken") == "the disk is gone"
    assert first == second
    for name, sentence in SAID.items():
        assert first[name].startswith(sentence)


def test_a_run_goes_on_for_one_loop_after_another_and_the_model_has_each_step(launcher):
    parts = partition(network(), 2)
    first, second = launcher.launch("going_on", 2, partition_to_json(parts))
    step = network()
    run = planner.run_workers(step, parts, steps=0, progress=False)
    losses = [*run.steps(batches(2)), *run.steps(batches(1, seed=4))]
    run.close()
    assert first == second
    assert first["losses"] == [loss.hex() for loss in losses]
    assert first["bits"][1] == bits(step) != first["bits"][0]


@pytest.mark.parametrize(
    ("sent", "ranks", "lost", "said"),
    [
        (signal.SIGKILL, 2, 0, "rank 0 has ended unexpectedly; the run is over on all ranks"),
        (signal.SIGSTOP, 3, 1, "rank 1 has not answered for 6 seconds; the run is over on all ranks"),
    ],
)
def test_ranks_end_within_ten_seconds_of_the_loss_of_one_and_keep_their_models(
    launcher, tmp_path, sent, ranks, lost, said
):
    parts = partition_to_json(partition(network(), ranks))
    processes = launcher.start("endless", ranks, parts, str(tmp_path))
    others = [process for rank, process in enumerate(processes) if rank != lost]
    try:
        assert until(lambda: len(list(tmp_path.iterdir())) == ranks)
        os.kill(processes[lost], sent)
        begun = time.monotonic()
        assert until(lambda: not any(Path(f"/proc/{process}").exists() for process in others))
        assert time.monotonic() < begun + 10
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
    found = launcher.results()
    assert found.pop(lost) is None
    assert found == [[said, True]] * (ranks - 1)


def test_ctrl_c_ends_each_rank_with_one_line_and_keeps_its_steps(launcher, tmp_path):
    processes = launcher.start("interrupted", 2, partition_to_json(partition(network(), 2)), str(tmp_path))
    for time_of_it in range(2):
        assert until(lambda time_of_it=time_of_it: len(list(tmp_path.glob(f"* {time_of_it}"))) == 2)
        for process in processes:
            os.kill(process, signal.SIGINT)
    first, second = launcher.results()
    assert first[0] == second[0]  # all stop after the same step
    for waited, looped in (first, second):
        assert re.fullmatch(r"stopped after \d+ of 1000000 steps", waited[0])
        assert re.fullmatch(r"stopped after \d+ steps", looped[0])
        assert waited[1]
        assert looped[1]


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (
            {"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "29500"},
            "MASTER_ADDR is not set, which each rank of a launch",
        ),
        ({"RANK": "0"}, "WORLD_SIZE is not set, which each rank of a launch has"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK must be a whole number from 0 to 1, got '2'"),
        ({"RANK": "0", "WORLD_SIZE": "two"}, "WORLD_SIZE must be a whole number from 1 to 4,096, got 'two'"),
        (
            {"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "99999"},
            "MASTER_PORT must be a whole number from 1 to 65,535",
        ),
    ],
)
def test_an_environment_that_is_no_launchers_is_refused(monkeypatch, environment, said):
    step = network()
    parts = partition(step, 2)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StowageError, match=said):
        planner.run_workers(step, parts, progress=False)


def test_a_port_in_use_and_a_transport_of_one_host_are_refused(monkeypatch):
    step = network()
    parts = partition(step, 2)
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        for name, value in {"RANK": 0, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}.items():
            monkeypatch.setenv(name, str(value))
        with pytest.raises(StowageError, match=f"port {port} is in use on this host, where rank 0 serves the others"):
            planner.run_workers(step, parts, progress=False).wait()
    with pytest.raises(StowageError, match="ranks of a launcher exchange over TCP: leave it out"):
        planner.run_workers(step, parts, transport="gloo", progress=False)


def test_ranks_write_checkpoints_together_that_any_number_of_workers_goes_on_from(launcher, tmp_path):
    parts, folder = partition(network(dropout=0.3), 2), tmp_path / "saved"
    first, second = launcher.launch("checkpointed", 2, partition_to_json(parts), [str(folder)] * 2)
    assert first == second
    assert {each.name.split("_")[2] for each in folder.glob("step-5/*.distcp")} == {"0", "1", "2"}  # 2: of no rank
    step = network(dropout=0.3)
    assert planner.run.load_checkpoint(step, folder) == 5
    assert bits(step) == first["bits"]
    again = launcher.launch("checkpointed", 2, partition_to_json(parts), [str(folder)] * 2)
    assert again[0] == again[1]
    planner.run_workers(step, parts, steps=2, progress=False).wait()
    planner.run_workers(step, parts, batches=[*batches(2), *batches(1, seed=5)], progress=False).wait()
    assert again[0]["bits"] == bits(step)  # went on from step 5, as one process does


@pytest.mark.parametrize(
    ("fault", "said", "step"),
    [
        ("full", "the checkpoint after step 3 cannot be written to {}: No space left on device (at rank 1); free", 2),
        ("elsewhere", "rank 1 does not see what rank 0 writes to {}: choose a folder on a file system", None),
        ("other", "rank 1's checkpoint is {}, and rank 0's is {}: call planner.run_workers with the same", None),
        ("used", "{} has other files in it, such as notes.txt; choose another folder", None),
    ],
)
def test_a_checkpoint_that_a_rank_cannot_write_ends_the_run_at_all_and_keeps_its_steps(
    launcher, tmp_path, fault, said, step
):
    folders = [tmp_path / "saved"] * 2
    if fault == "other":
        folders[1] = tmp_path / "another"
    if fault == "used":
        folders[0].mkdir()
        (folders[0] / "notes.txt").touch()
    parts = partition(network(), 2)
    arguments = partition_to_json(parts), [str(each) for each in folders], fault
    first, second = launcher.launch("badly_checkpointed", 2, *arguments)
    assert first == second
    error, steps = first
    assert error.startswith(said.format(*reversed(folders)))
    assert steps == {"full": 3, "elsewhere": 1}.get(fault, 0)
    if step is not None:
        assert planner.run.load_checkpoint(network(), folders[0]) == step


def test_a_rank_that_is_lost_leaves_a_checkpoint_that_the_others_name(launcher, tmp_path):
    parts, folder = partition(network(), 2), tmp_path / "saved"
    said, _ = launcher.launch("killed", 2, partition_to_json(parts), str(folder))
    found = re.fullmatch(
        rf"rank 1 has ended unexpectedly; the run is over on all ranks; the state after step (\d+) is in {folder}: "
        rf"load it with planner.run.load_checkpoint\(step, '{folder}'\), and run again",
        said,
    )
    assert planner.run.load_checkpoint(network(), folder) == int(found[1]) == 3
