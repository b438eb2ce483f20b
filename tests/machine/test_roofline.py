"""The roofline model: an op takes a launch and the longer of its arithmetic and its memory traffic."""

from __future__ import annotations

import pytest

from planner import zoo
from planner.capture import capture
from planner.graph import Graph, GraphBuilder, Kind
from planner.machine import Device, Link, Machine, OpClass, op_class, op_seconds

DEVICE = Device(
    name="round numbers",
    kind="cuda",
    memory_bytes=10**9,
    memory_bandwidth=1e9,
    flops={"float32": 1e12, "bfloat16": 4e12},
    efficiency={"matmul": 0.5, "memory": 0.25, "depthwise": 0.1},
    launch_seconds=1e-6,
)
MACHINE = Machine("round", (DEVICE,), Link(1e9, 2e9), 10**9)


def one_op(target: str, flops: int, moved: int, dtype: str = "float32") -> Graph:
    builder = GraphBuilder("one op")
    tensors = [
        builder.add_tensor(name, builder.add_storage(name, 64, Kind.INPUT), (4, 4), dtype=dtype) for name in "ab"
    ]
    result = builder.add_tensor("c", builder.add_storage("c", 64, Kind.ACTIVATION), (4, 4), dtype=dtype)
    builder.add_op("op", target, tensors, [result], flops=flops, moved=moved)
    return builder.build([result])


@pytest.mark.parametrize(
    ("target", "flops", "moved", "dtype", "seconds"),
    [
        ("aten.mm.default", 10**12, 0, "float32", 2.0),
        ("aten.mm.default", 10**12, 0, "bfloat16", 0.5),
        ("aten.mm.default", 10**9, 10**9, "float32", 4.0),
        ("aten.add.Tensor", 10**12, 10**6, "float32", 0.004),
        ("aten.add.Tensor", 0, 0, "float32", 0.0),
    ],
)
def test_the_longer_of_arithmetic_and_traffic_decides(
    target: str, flops: int, moved: int, dtype: str, seconds: float
) -> None:
    assert op_seconds(one_op(target, flops, moved, dtype), MACHINE) == pytest.approx([seconds + 1e-6])


def families(text: str) -> dict[str, set[OpClass]]:
    graph = capture(zoo.load(text))
    found: dict[str, set[OpClass]] = {}
    for op in graph.ops:
        found.setdefault(f"{op.module} {op.target}", set()).add(op_class(graph, op))
    return found


def test_convolutions_are_told_apart_by_their_shapes() -> None:
    found = families("wresnet:image=32,batch=2")
    convolution, gradients = "aten.convolution.default", "aten.convolution_backward.default"
    for target in (convolution, gradients):
        assert found[f"stages.0.0.conv1 {target}"] == {OpClass.CONVOLUTION}  # 1 by 1
        assert found[f"stages.0.0.conv2 {target}"] == {OpClass.CONVOLUTION_3X3}
        assert found[f"stages.1.0.conv2 {target}"] == {OpClass.CONVOLUTION}  # stride 2
        assert found[f"stem.0 {target}"] == {OpClass.CONVOLUTION}  # 7 by 7
    found = families("nasnet:cells=1,filters=8,image=64")
    for target in (convolution, gradients):
        assert found[f"cells.0.body.left0.depthwise1 {target}"] == {OpClass.DEPTHWISE}
        assert found[f"cells.0.body.left0.pointwise1 {target}"] == {OpClass.CONVOLUTION}


def test_attention_and_matrix_products_have_their_families() -> None:
    found = families("gpt:layers=1,hidden=32,heads=2,sequence=16")
    by_target: dict[str, set[OpClass]] = {}
    for key, kinds in found.items():
        by_target.setdefault(key.split(" ")[1], set()).update(kinds)
    assert by_target["aten.addmm.default"] == by_target["aten.mm.default"] == {OpClass.MATMUL}
    attention = [kinds for target, kinds in by_target.items() if "scaled_dot_product" in target]
    assert len(attention) == 2
    assert all(kinds == {OpClass.ATTENTION} for kinds in attention)
    assert by_target["aten.gelu.default"] == {OpClass.MEMORY}
