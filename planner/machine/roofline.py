"""How long ops take on a device that is not there: the roofline model with one table of efficiencies."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from planner.graph import Graph, Op
from planner.machine.families import Family, family
from planner.machine.types import Device, Machine

#: Share of the data sheet's peak that cuDNN's and cuBLAS's kernels reach, one figure per family.
#:
#: The figures are those that explain the times of SwapAdvisor's models on a V100 with memory to spare (ASPLOS 2020),
#: every row within 15 %: `benchmarks/ideal.py` prints them. Winograd's algorithm needs 2.25 times or more fewer
#: multiplications than are counted, so 3 by 3 convolutions exceed the peak. Depthwise convolutions were served by
#: slow kernels then: NASNet's times leave no other explanation. Attention is not in those models; 0.4 is what
#: fused kernels usually reach.
CUDA_EFFICIENCY: Mapping[str, float] = MappingProxyType(
    {
        Family.MATMUL: 0.57,
        Family.ATTENTION: 0.40,
        Family.CONVOLUTION_3X3: 1.35,
        Family.CONVOLUTION: 0.41,
        Family.DEPTHWISE: 0.0049,
        Family.MEMORY: 0.80,
    }
)

#: Share of a peak that is measured as a matrix product: rough means over the zoo's models on an AMD EPYC of the Zen 5
#: generation, whose convolutions run faster than its matrix products. Plans for the attached CPU go by measured times.
CPU_EFFICIENCY: Mapping[str, float] = MappingProxyType(
    {
        Family.MATMUL: 0.90,
        Family.ATTENTION: 0.75,
        Family.CONVOLUTION_3X3: 1.30,
        Family.CONVOLUTION: 1.10,
        Family.DEPTHWISE: 0.04,
        Family.MEMORY: 0.55,
    }
)


def op_seconds(graph: Graph, machine: Machine) -> NDArray[np.float64]:
    """Predicted duration of every op on one device of a machine, by the roofline model.

    An op takes a launch, and then as long as its arithmetic at its family's share of the peak or its memory traffic at
    the attainable bandwidth, whichever is longer (Williams et al., Roofline, CACM 2009).

    Args:
        graph: ops with `flops` and `bytes`.
        machine: its first device is taken; all are alike.

    Returns:
        Seconds, shape (ops,).
    """
    device = machine.device
    return np.array([_seconds(graph, op, device) for op in graph.ops], np.float64)


def _seconds(graph: Graph, op: Op, device: Device) -> float:
    kind = family(graph, op)
    work = op.bytes / (device.memory_bandwidth * device.efficiency.get(Family.MEMORY, 1.0))
    if kind is not Family.MEMORY:
        work = max(work, op.flops / (_peak(graph, op, device) * device.efficiency.get(kind, 1.0)))
    return work + device.launch_seconds


def _peak(graph: Graph, op: Op, device: Device) -> float:
    dtype = graph.tensors[op.outputs[0]].dtype if op.outputs else "float32"
    return device.flops.get(dtype, device.flops["float32"])
