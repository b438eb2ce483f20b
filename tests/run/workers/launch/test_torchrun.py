"""Two hosts that PyTorch's own launcher starts run a partition's file; they know of each other an address alone."""

import json
import os
import shutil
import socket
import subprocess
import sys

import pytest

from planner import zoo
from planner.capture import capture
from planner.partition import PartitionPlan, coarsen, optimize, save_partition

MODEL = "mlp:layers=2,hidden=32,batch=16"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def start(folder, port, host):
    """`torchrun` on one of two hosts, in a folder of its own that has the partition's file."""
    for name in ("temporary", "cache"):
        (folder / name).mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(host),
         "--rdzv-endpoint", f"127.0.0.1:{port}", "-m", "planner",
         "run", MODEL, "--partition", "parts.json", "--steps", "2", "--check", "--json"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // 2)),
             "TMPDIR": str(folder / "temporary"), "XDG_CACHE_HOME": str(folder / "cache")},
    )  # fmt: skip


def test_two_hosts_make_the_steps_of_eager_pytorch_and_the_first_one_prints(tmp_path):
    step = zoo.load(MODEL)
    parts = PartitionPlan.of(optimize(coarsen(capture(step, progress=False)), 2))
    folders = [tmp_path / "first", tmp_path / "second"]
    folders[0].mkdir()
    save_partition(parts, folders[0] / "parts.json")
    shutil.copytree(*folders)
    port = free_port()
    hosts = [start(folder, port, host) for host, folder in enumerate(folders)]
    try:
        said = [host.communicate(timeout=300) for host in hosts]
    finally:
        for host in hosts:
            host.kill()
    assert [host.returncode for host in hosts] == [0, 0], said
    assert said[1][0] == ""  # rank 0 speaks for all
    facts = json.loads(said[0][0])
    assert facts["losses"] == pytest.approx([float(step.eager()) for _ in range(2)], rel=1e-5)
    assert facts["bytes_counted"] == facts["bytes_predicted"] > 0
    assert 0 < facts["max_rel_error"] <= 30 * facts["rounding_rel_error"]
