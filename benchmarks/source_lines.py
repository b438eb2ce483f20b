"""Of the bytes at the peak of a step, how many belong to a line of the model's own file.

    python benchmarks/source_lines.py [MODEL ...]

A model is a zoo name with arguments, or one of the architectures of `benchmarks/architecture_models.py`. Files of the
zoo are those of its models; for a model of `transformers` it is the file that defines its class. Losses that a step is
given count as well, since they are the user's.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from architecture_models import ARCHITECTURES

from planner import Adam, TrainStep, zoo
from planner.capture import capture
from planner.graph import Graph, storage_lines
from planner.memory import lifetimes

ZOO = [f"{name}:optimizer=adam" for name in ("mlp", "wresnet", "rnn", "brnn", "inception", "nasnet", "gpt")]
TRANSFORMERS = ["llama", "mistral", "gemma2", "gpt2", "bloom", "bert", "t5", "mixtral", "vit", "swin"]
LEAST = 0.95


def main() -> None:
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=[*ZOO, *TRANSFORMERS], metavar="MODEL")
    shown = Table(title="Bytes at the peak that belong to a line of the model's file")
    for column in ("model", "peak MiB", "its file", "other files", "no line"):
        shown.add_column(column, justify="left" if column == "model" else "right")
    for model in parser.parse_args().models:
        graph, files = captured(model)
        peak, own, unknown = at_peak(graph, files)
        text = f"{own / peak:.2%}"
        shown.add_row(
            model, f"{peak / 2**20:.1f}", text if own >= LEAST * peak else f"[red]{text}[/red]",
            f"{(peak - own - unknown) / peak:.2%}", f"{unknown / peak:.2%}",
        )  # fmt: skip
    Console(width=120).print(shown)


def captured(model: str) -> tuple[Graph, set[str]]:
    """The graph of a model, and the names of its files."""
    if model not in ARCHITECTURES:
        files = {path.name for path in Path(str(zoo.__file__)).parent.glob("*.py")}
        return capture(zoo.load(model), progress=False), files
    architecture = ARCHITECTURES[model]
    built = architecture.build()
    step = TrainStep(built, architecture.batch(0, architecture.masks[0]), optimizer=Adam())
    return capture(step, progress=False), {Path(str(sys.modules[type(built).__module__].__file__)).name}


def at_peak(graph: Graph, files: set[str]) -> tuple[int, int, int]:
    """Bytes at the peak, of those in a line of these files, and of those without a line."""
    lives = lifetimes(graph)
    peak, lines = int(lives.live_bytes.argmax()), storage_lines(graph)
    present = [s for s in graph.storages if lives.birth[s.id] <= peak <= lives.end[s.id]]
    own = sum(storage.bytes for storage in present if lines[storage.id].partition(":")[0] in files)
    unknown = sum(storage.bytes for storage in present if not lines[storage.id])
    return sum(storage.bytes for storage in present), own, unknown


if __name__ == "__main__":
    main()
