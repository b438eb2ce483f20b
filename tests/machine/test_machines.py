"""Machines by name: the presets say what the papers say, and what is attached is measured."""

from __future__ import annotations

import psutil
import pytest
import torch

from planner.errors import StowageError
from planner.profile import machine, machines

CARDS = ["t4", "l4", "a10", "a100-40gb", "rtx3090", "rtx4090", "rtx5090", "b200", "mi300x"]
PRESETS = ["v100-16gb", "k80x8", "a100-80gb", "h100", "h200", "laptop", *CARDS, "a100x8", "h100x8", "h200x8"]


def test_every_machine_can_be_named() -> None:
    assert [each.name for each in machines()] == ["auto", "cpu", *PRESETS]
    for name in PRESETS:
        assert machine(name).name == machine(name.upper()).name == name


def test_a_machine_shows_itself_in_one_line() -> None:
    for one in machines():
        assert repr(one).startswith(f"<Machine {one.name}: ")
        assert "\n" not in repr(one)
        assert len(repr(one)) < 160
    assert "8 x NVIDIA" in repr(machine("k80x8"))


def test_the_v100_is_swapadvisors() -> None:
    v100 = machine("v100-16gb")
    assert v100.device.memory_bytes == 16 * 10**9
    assert v100.device.memory_bandwidth == 900e9
    assert v100.device.flops["float32"] == 14e12
    assert (v100.host_link.bandwidth, v100.host_link.duplex_bandwidth) == (12e9, 20e9)


def test_the_k80s_are_tofus() -> None:
    k80 = machine("k80x8")
    assert len(k80.devices) == 8
    assert k80.device.memory_bytes == 12 * 10**9
    assert k80.peer_link is not None
    assert k80.peer_link.bandwidth == 21e9


def test_hosts_are_counted_in_a_machines_name() -> None:
    four = machine("H100x8:hosts=4")
    assert (four.name, four.hosts, len(four.devices)) == ("h100x8:hosts=4", 4, 8)
    assert "4 hosts of 8 x NVIDIA H100" in repr(four)
    assert four.network_link is not None
    assert four.network_link.bandwidth == 8 * 400e9 / 8  # eight adapters of 400 Gb/s
    assert machine("h100x8:hosts=1") == machine("h100x8")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("h100x8:hosts=0", "hosts must be 1 to 1024, got 0"),
        ("h100x8:hosts=9999", "hosts must be 1 to 1024"),
        ("h100x8:hosts=two", "as in h100x8:hosts=4, not 'two'"),
        ("h100x8:4", "'4' is not a setting; write h100x8:hosts=4 or h100x8:memory=24GB"),
        ("l4:hosts=1,hosts=2", "'hosts=2' is set twice"),
        ("l4:memry=3GB", r"l4 has no setting 'memry' \(did you mean memory\?\); it takes hosts, memory, host_memory"),
        ("l4:memory=lots", "memory must be an amount as in l4:memory=24GB, got 'lots'"),
        ("l4:memory=0GB", "memory must be an amount"),
        ("l4:memory=-1GB", "memory must be an amount"),
        ("l4:host_link=25GB/h", "host_link must be an amount as in l4:host_link=25GB/s, got '25gb/h'"),
        ("h100x9:hosts=2", "did you mean h100x8"),
        ("laptop:hosts=2", "laptop has no network to other hosts; choose one of k80x8, a100x8, h100x8, h200x8"),
        ("cpu:hosts=2", "unknown preset 'cpu'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(name: str, says: str) -> None:
    with pytest.raises(StowageError, match=says):
        machine(name)


def test_a_preset_takes_other_figures_by_name_or_argument() -> None:
    named = machine("RTX4090:memory=48gb,host_memory=128GiB,host_link=12.5GB/s")
    given = machine("rtx4090", memory="48 gb", host_memory="128GiB", host_link="12.5GB/s")
    assert named == given
    assert named.name == "rtx4090:memory=48GB,host_memory=128GiB,host_link=12.5GB/s"
    assert (named.device.memory_bytes, named.host_memory_bytes) == (48 * 10**9, 128 * 2**30)
    assert (named.host_link.bandwidth, named.host_link.duplex_bandwidth) == (12.5e9, 21e9)
    assert named.device.flops == machine("rtx4090").device.flops
    assert "48GB" in repr(named)
    assert machine(named.name) == named
    servers = machine("h100x8:memory=40GB", hosts=2)
    assert (servers.name, servers.hosts) == ("h100x8:hosts=2,memory=40GB", 2)
    assert {device.memory_bytes for device in servers.devices} == {40 * 10**9}


def test_what_is_measured_takes_no_other_figures() -> None:
    with pytest.raises(StowageError, match="cpu is measured and has no memory to set; set it of a preset such as l4"):
        machine("cpu", memory="8GB")


@pytest.mark.parametrize("name", ["cpu", "auto", *PRESETS])
def test_a_link_gains_from_both_directions_but_not_more_than_twofold(name: str) -> None:
    each = machine(name)
    for link in (each.host_link, each.peer_link or each.host_link, each.network_link or each.host_link):
        assert 0 < link.bandwidth <= link.duplex_bandwidth <= 2 * link.bandwidth
        assert 0 <= link.latency < 0.1
    assert each.host_memory_bytes > 0
    assert len({(device.name, device.memory_bytes) for device in each.devices}) == 1


def test_the_cpu_is_a_machine_whose_device_and_host_share_memory() -> None:
    cpu = machine("cpu")
    assert cpu.device.kind == "cpu"
    assert cpu.device.alignment == 64
    assert cpu.device.memory_bytes == cpu.host_memory_bytes == psutil.virtual_memory().total
    assert cpu.device.memory_bandwidth > 0
    assert cpu.device.flops["float32"] > 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is attached")
def test_without_a_gpu_auto_is_the_cpu() -> None:
    assert machine("auto").devices == machine("cpu").devices
    assert machine("auto").host_link == machine("cpu").host_link


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is attached")
def test_with_a_gpu_auto_is_the_gpu() -> None:
    auto = machine("auto")
    assert auto.device.kind == "cuda"
    assert auto.device.alignment == 512
    assert auto.device.memory_bytes == torch.cuda.get_device_properties(0).total_memory


@pytest.mark.parametrize(("name", "says"), [("v100", "did you mean v100-16gb"), ("", "choose one of auto, cpu, v100")])
def test_an_unknown_machine_is_answered_with_those_there_are(name: str, says: str) -> None:
    with pytest.raises(StowageError, match=says):
        machine(name)
