"""How long a capture takes, and what memory: each model in a fresh process on one core.

    python benchmarks/capture.py [MODEL ...]

A model is given as for `python -m planner capture`. Without one, two that the project must manage within limits, and
larger ones. `allocated` is what PyTorch allocated for tensors in all while the step was captured, and the largest of
these, in a second process: numbers that constructors write as `torch.tensor(0)`, and nothing of the model.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time

#: By model: most seconds, most MiB of resident memory.
LIMITS = {
    "wresnet:depth=152,widen=1,image=224,batch=32": (4.0, 600.0),
    "gpt:layers=24,hidden=4096,heads=32,sequence=1024,vocabulary=50257,batch=8,optimizer=adam": (15.0, 800.0),
}
MORE = ("wresnet:depth=152,widen=10,image=224,batch=64,optimizer=adam", "rnn:layers=8,hidden=8192,batch=128", "nasnet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=[*LIMITS, *MORE], metavar="MODEL")
    parser.add_argument("--measure", choices=("time", "allocations"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure is None:
        table(arguments.models)
    else:
        measure = {"time": timed, "allocations": allocations}[arguments.measure]
        print(json.dumps(measure(arguments.models[0])))


def table(models: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    shown = Table(title="Capture of a whole training step, one core")
    for column in ("model", "ops", "parameters GiB", "import s", "capture s", "limit s", "RSS MiB", "limit MiB"):
        shown.add_column(column, justify="left" if column == "model" else "right", overflow="fold")
    shown.add_column("allocated bytes (largest)", justify="right")
    for model in models:
        row = in_fresh_process(model, "time")
        seconds, mebibytes = LIMITS.get(model, (None, None))
        shown.add_row(
            model, str(row["ops"]), f"{row['parameter_bytes'] / 2**30:.2f}", f"{row['import_seconds']:.2f}",
            judged(row["capture_seconds"], seconds, 2), "" if seconds is None else f"{seconds:.0f}",
            judged(row["rss_mebibytes"], mebibytes, 0), "" if mebibytes is None else f"{mebibytes:.0f}",
            "{bytes} ({largest})".format(**in_fresh_process(model, "allocations")),
        )  # fmt: skip
    Console(width=150).print(shown)


def judged(value: float, limit: float | None, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text if limit is None or value < limit else f"[red]{text}[/red]"


def in_fresh_process(model: str, measure: str) -> dict[str, float]:
    command = [sys.executable, __file__, model, "--measure", measure]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def timed(model: str) -> dict[str, float]:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    started = time.perf_counter()
    from planner import capture, graph, zoo

    step = zoo.load(model)
    imported = time.perf_counter()
    captured = capture.capture(step)
    return {
        "import_seconds": imported - started,
        "capture_seconds": time.perf_counter() - imported,
        "rss_mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "ops": len(captured.ops),
        "parameter_bytes": captured.bytes_of([graph.Kind.PARAMETER]),
    }


def allocations(model: str) -> dict[str, float]:
    from torch.profiler import ProfilerActivity, profile

    from planner import capture, zoo

    step = zoo.load(model)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        capture.capture(step)
    events = profiler.profiler.kineto_results.events()
    sizes = [event.nbytes() for event in events if event.name() == "[memory]" and event.nbytes() > 0]
    return {"bytes": sum(sizes), "largest": max(sizes, default=0)}


if __name__ == "__main__":
    main()
