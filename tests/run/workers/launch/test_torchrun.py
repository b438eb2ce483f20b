"""Two hosts that PyTorch's own launcher starts run a partition's file; they know of each other an address alone."""

import json
import shutil

import pytest

from planner import zoo
from planner.capture import capture
from planner.partition import PartitionPlan, coarsen, optimize, save_partition
from tests.ports import free_port

MODEL = "mlp:layers=2,hidden=32,batch=16"


def test_two_hosts_make_the_steps_of_eager_pytorch_and_the_first_one_prints(launcher, tmp_path):
    step = zoo.load(MODEL)
    parts = PartitionPlan.of(optimize(coarsen(capture(step, progress=False)), 2))
    folders = [tmp_path / "first", tmp_path / "second"]
    folders[0].mkdir()
    save_partition(parts, folders[0] / "parts.json")
    shutil.copytree(*folders)
    launcher.start_hosts(
        folders, "--nnodes", "2", "--rdzv-endpoint", f"127.0.0.1:{free_port()}", "-m", "planner",
        "run", MODEL, "--partition", "parts.json", "--steps", "2", "--check", "--json",
    )  # fmt: skip
    ended = launcher.results()
    said, complained = ([(folder / name).read_text() for folder in folders] for name in ("said", "complained"))
    assert ended == ["done", "done"], complained
    assert said[1] == ""  # rank 0 speaks for all
    facts = json.loads(said[0])
    assert facts["losses"] == pytest.approx([float(step.eager()) for _ in range(2)], rel=1e-5)
    assert facts["bytes_counted"] == facts["bytes_predicted"] > 0
    assert 0 < facts["max_rel_error"] <= 30 * facts["rounding_rel_error"]
