"""SwapAdvisor's "infinite memory" column (ASPLOS 2020) against the roofline model of a V100, row by row."""

from __future__ import annotations

import argparse

from rich import box
from rich.console import Console
from rich.table import Table

from planner.capture import capture
from planner.graph import Graph
from planner.machine import Machine, OpClass, op_class, op_seconds
from planner.profile import machine
from planner.zoo import load

#: Model, and samples per second by batch with memory to spare. For WResNet-152-4 only SwapAdvisor's own figures are
#: published, so that a factor below 1 is right.
PAPER = {
    "RNN-8-8K": ("rnn:layers=8,hidden=8192", {128: 14.5, 256: 14.7}),
    "BRNN-4-8K": ("brnn:layers=4,hidden=8192", {64: 7.97, 128: 10.9}),
    "WResNet-152-10": ("wresnet:depth=152,widen=10,image=224", {16: 3.85, 32: 4.07, 64: 4.21}),
    "WResNet-152-4 *": ("wresnet:depth=152,widen=4,image=224", {16: 14.2, 32: 15.0, 64: 15.2}),
    "Inception-4": ("inception:version=3,widen=4", {16: 12.7, 32: 13.8, 64: 14.2}),
    "NasNet-25": ("nasnet:cells=8", {16: 7.06, 32: 8.82, 64: 9.46}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", default="v100-16gb", help="preset to predict for (default: v100-16gb)")
    target = machine(parser.parse_args().machine)
    device = target.device
    console = Console()
    shown = [kind for kind in OpClass if kind is not OpClass.ATTENTION]
    title = f"Seconds a step with memory to spare on {target.name}; each family's share in %"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("model", no_wrap=True)
    for heading in ("batch", "paper", "model", "factor", "matmul", "3x3", "conv", "depth", "mem"):
        table.add_column(heading, justify="right", no_wrap=True)
    factors = []
    for name, (text, rows) in PAPER.items():
        for batch, samples_per_second in rows.items():
            graph = capture(load(f"{text},batch={batch}"))
            spent = _seconds_by_family(graph, target)
            paper, predicted = batch / samples_per_second, sum(spent.values())
            factors.append(predicted / paper)
            shares = [f"{100 * spent[kind] / predicted:.0f}" for kind in shown]
            table.add_row(name, str(batch), f"{paper:.2f}", f"{predicted:.2f}", f"{factors[-1]:.3f}", *shares)
    console.print(table)
    console.print(f"Largest deviation of the factor from 1: {100 * max(abs(factor - 1) for factor in factors):.1f} %")
    console.print(f"Peak {device.flops['float32'] / 1e12:g} TFLOP/s, {device.memory_bandwidth / 1e9:g} GB/s, ", end="")
    console.print(f"{device.launch_seconds * 1e6:g} us per op; attainable share of the peak by family:")
    console.print("  " + ", ".join(f"{kind} {share:g}" for kind, share in device.efficiency.items()))


def _seconds_by_family(graph: Graph, target: Machine) -> dict[OpClass, float]:
    spent = dict.fromkeys(OpClass, 0.0)
    for op, seconds in zip(graph.ops, op_seconds(graph, target), strict=True):
        spent[op_class(graph, op)] += float(seconds)
    return spent


if __name__ == "__main__":
    main()
