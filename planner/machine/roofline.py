"""Predicted op times on a device that is not attached: the roofline model with a table of efficiencies per device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from planner.graph import Graph, Op
from planner.machine.graph_collectives import collective_op_seconds, is_collective
from planner.machine.machine_types import Device, Machine
from planner.machine.op_classes import OpClass, op_class

#: Share of the data sheet's peak that cuDNN's and cuBLAS's kernels reach, one figure per op class.
#:
#: The figures are fitted to the times of SwapAdvisor's models on a V100 with memory to spare (ASPLOS 2020), every row
#: within 15 %: `benchmarks/ideal.py` prints them. Winograd's algorithm needs at least 2.25 times fewer multiplications
#: than are counted, so 3 by 3 convolutions exceed the peak. Depthwise convolutions had slow kernels then: NASNet's
#: times leave no other explanation. Attention is not in those models; 0.4 is typical of fused kernels.
CUDA_EFFICIENCY: Mapping[str, float] = MappingProxyType(
    {
        OpClass.MATMUL: 0.57,
        OpClass.ATTENTION: 0.40,
        OpClass.CONVOLUTION_3X3: 1.35,
        OpClass.CONVOLUTION: 0.41,
        OpClass.DEPTHWISE: 0.0049,
        OpClass.MEMORY: 0.80,
    }
)

#: Share of a peak that is measured with a matrix product: rough means over the zoo's models on an AMD EPYC of the Zen 5
#: generation, whose convolutions run faster than its matrix products. Plans for the attached CPU use measured times.
CPU_EFFICIENCY: Mapping[str, float] = MappingProxyType(
    {
        OpClass.MATMUL: 0.90,
        OpClass.ATTENTION: 0.75,
        OpClass.CONVOLUTION_3X3: 1.30,
        OpClass.CONVOLUTION: 1.10,
        OpClass.DEPTHWISE: 0.04,
        OpClass.MEMORY: 0.55,
    }
)


def op_seconds(
    graph: Graph, machine: Machine, flops: Sequence[float] | None = None, traffic: Sequence[float] | None = None
) -> NDArray[np.float64]:
    """Predicted duration of every op on one device of a machine, by the roofline model.

    An op takes a launch plus the longer of its arithmetic at its class's share of the peak and its memory traffic at
    the attainable bandwidth (Williams et al., Roofline, CACM 2009). A collective takes a launch plus what
    `collective_seconds` says of its bytes; its memory traffic counts where the link is not known.

    Args:
        graph: ops with `flops` and `bytes`.
        machine: its first device is used, as all are alike, and the links between them.
        flops, traffic: per op, its arithmetic in FLOP and its memory traffic in bytes, where a device does not run all
            of it; those of the graph if not given.

    Returns:
        Seconds, shape (ops,).
    """
    device = machine.device
    flops = [op.flops for op in graph.ops] if flops is None else flops
    traffic = [op.bytes for op in graph.ops] if traffic is None else traffic
    seconds = [
        _seconds(graph, op, device, work, moved) for op, work, moved in zip(graph.ops, flops, traffic, strict=True)
    ]
    for op in filter(is_collective, graph.ops):
        communicated = collective_op_seconds(graph, op, machine)
        if communicated is not None:
            seconds[op.id] = communicated + device.launch_seconds
    return np.array(seconds, np.float64)


def _seconds(graph: Graph, op: Op, device: Device, flops: float, traffic: float) -> float:
    class_of_op = op_class(graph, op)
    work = traffic / (device.memory_bandwidth * device.efficiency.get(OpClass.MEMORY, 1.0))
    if class_of_op is not OpClass.MEMORY:
        work = max(work, flops / (_peak(graph, op, device) * device.efficiency.get(class_of_op, 1.0)))
    return work + device.launch_seconds


def _peak(graph: Graph, op: Op, device: Device) -> float:
    dtype = graph.tensors[op.outputs[0]].dtype if op.outputs else "float32"
    return device.flops.get(dtype, device.flops["float32"])
