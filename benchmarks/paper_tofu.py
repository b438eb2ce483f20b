"""Tofu's comparison (EuroSys 2019) on its machine of eight K80s, with our own partition and swapping beside it.

    python benchmarks/paper_tofu.py [--rows WResNet-152,RNN-10] [--seconds S] [--bytes] [--json]

ideal               one device with memory without end, times eight
small batch         data parallelism with the largest batch that fits
swapping            data parallelism in which every device swaps, all over one link to the host
operator placement  layers on devices in turn, running at once as far as the graph allows
Tofu                the recursion's partition
ours                the fastest partition, with swapping within it where it does not fit

All columns are predictions by the same model of the machine, in samples per second; below each is its share of the
ideal and, where it is not the row's, its batch. The batch is halved until a partition or a placement fits. The columns
Tofu and ours approximate a worker's memory from its share of every tensor and what its ops fetch.

Of the paper no table of figures is at hand: what is known of its results is recalled, printed as a goal and no
quotation. `--bytes` prints what each baseline moves beside the search, for eight workers, on every model of the zoo.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from time import perf_counter
from typing import Any

from paper_tofu_case import Case, Outcome, coarse_of
from paper_tofu_data_parallel import ideal, small_batch, swapping
from paper_tofu_partition import partition_and_swapping, tofu
from paper_tofu_placement import operator_placement
from rich import box
from rich.console import Console
from rich.table import Table

from planner.errors import StowageError
from planner.partition import BASELINES, baselines, recurse
from planner.profile import machine

#: The link of all devices to the host together, bytes per second, as recalled from the paper.
HOST_BANDWIDTH = 10e9
#: Shares of the ideal that the paper reports for Tofu, in percent, as recalled.
RECALLED = {"WResNet": (60, 95), "RNN": (70, 98)}
ROWS: dict[str, tuple[str, int]] = {
    **{
        f"WResNet-{depth}-{widen}": (f"wresnet:depth={depth},widen={widen},image=224,width=full", 128)
        for depth in (50, 101, 152)
        for widen in (4, 6, 8, 10)
    },
    **{
        f"RNN-{layers}-{hidden}K": (f"rnn:layers={layers},hidden={1024 * hidden},steps=20", 512)
        for layers in (6, 8, 10)
        for hidden in (4, 6, 8)
    },
}
#: Models whose bytes are compared: the rest of the zoo, and two rows.
ZOO: dict[str, tuple[str, int]] = {
    "mlp": ("mlp:hidden=1024", 1024),
    "gpt": ("gpt:layers=12,hidden=768,heads=12,sequence=256", 16),
    "brnn": ("brnn:layers=2,hidden=1024", 64),
    "inception-3": ("inception:version=3", 32),
    "inception-4": ("inception:version=4", 32),
    "nasnet": ("nasnet:cells=2", 32),
    **{name: ROWS[name] for name in ("WResNet-50-4", "RNN-6-4K")},
}
#: By name of the column.
COLUMNS: dict[str, Callable[[Case], Outcome]] = {
    "ideal": ideal,
    "small batch": small_batch,
    "swapping": swapping,
    "operator placement": operator_placement,
    "Tofu": tofu,
    "ours": partition_and_swapping,
}
ALTERNATIVES = ("small batch", "swapping", "operator placement")


def compared(name: str, seconds: float, console: Console) -> dict[str, Any]:
    """All columns of a row."""
    text, batch = ROWS[name]
    case = Case(text, batch, machine("k80x8"), HOST_BANDWIDTH, seconds)
    found: dict[str, Outcome] = {}
    begin = perf_counter()
    with console.status(name) as status:
        for column, work in COLUMNS.items():
            status.update(f"{name}: {column}")
            found[column] = work(case)
    best = max(found[column].samples for column in ALTERNATIVES)
    return {
        "row": name,
        "batch": batch,
        "columns": {column: asdict(outcome) for column, outcome in found.items()},
        "percent_of_ideal": {
            column: 100 * outcome.samples / found["ideal"].samples for column, outcome in found.items()
        },
        "tofu_over_alternatives": found["Tofu"].samples / best if best else None,
        "tofu_first": found["ideal"].samples >= found["Tofu"].samples > best,
        "seconds": perf_counter() - begin,
    }


def moved(name: str, console: Console) -> dict[str, Any]:
    """Bytes of the recursion and of every baseline, for eight workers."""
    text, batch = ZOO[name]
    with console.status(f"{name}: bytes"):
        coarse = coarse_of(Case(text, batch, machine("k80x8"), HOST_BANDWIDTH, 0).graph(batch))
        others = baselines(coarse, 8)
        try:
            ours = recurse(coarse, 8)
        except StowageError as error:
            return {"row": name, "error": str(error)}
    known = {method: None if found is None else found.bytes_moved for method, found in others.items()}
    stored = {method: None if found is None else found.resident_bytes() for method, found in others.items()}
    split = [size for method, size in known.items() if size is not None and method != "data-parallel"]
    return {
        "row": name,
        "bytes": ours.bytes_moved,
        "stored": ours.resident_bytes(),
        "baseline_bytes": known,
        "baseline_stored": stored,
        "never_above": ours.bytes_moved <= min(split) * (1 + 1e-9),
    }


def comparison_table(found: list[dict[str, Any]]) -> Table:
    """Samples per second by row and column."""
    title = "Samples per second on 8 K80s, and % of ideal; Tofu's share as recalled from the paper is no quotation"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("model", no_wrap=True)
    for heading in (*COLUMNS, "recalled goal %", "Tofu / best other", "Tofu first"):
        table.add_column(heading, justify="right")
    for one in found:
        cells = []
        for column, outcome in one["columns"].items():
            if outcome["batch"] == 0:
                cells.append(outcome["note"])
                continue
            share = "" if column == "ideal" else f"\n{one['percent_of_ideal'][column]:.0f} %"
            batch = f" B={outcome['batch']}" if outcome["batch"] != one["batch"] else ""
            note = f"\n{outcome['note']}" if outcome["note"] else ""
            cells.append(f"{outcome['samples']:.3g}{share}{batch}{note}")
        low, high = RECALLED[one["row"].split("-")[0]]
        ratio = one["tofu_over_alternatives"]
        table.add_row(
            one["row"], *cells, f"{low}-{high}", f"{ratio:.2f}" if ratio else "none fits",
            "[green]yes[/]" if one["tofu_first"] else "[red]no[/]",
        )  # fmt: skip
    return table


def bytes_table(found: list[dict[str, Any]]) -> Table:
    """What the search and the baselines move."""
    title = "GB moved in a step by 8 workers together; below, GB of all tensors that one worker stores"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("model", no_wrap=True)
    for heading in ("search", *BASELINES, "never above"):
        table.add_column(heading, justify="right")
    for one in found:
        if "error" in one:
            table.add_row(one["row"], one["error"])
            continue
        cells = [
            "-" if size is None else f"{size / 1e9:.1f}\n{one['baseline_stored'][method] / 1e9:.1f}"
            for method, size in one["baseline_bytes"].items()
        ]
        table.add_row(
            one["row"], f"{one['bytes'] / 1e9:.1f}\n{one['stored'] / 1e9:.1f}", *cells,
            "[green]yes[/]" if one["never_above"] else "[red]no[/]",
        )  # fmt: skip
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="", help="only rows with one of these in their names, by comma")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each search for swaps (default: 10)")
    parser.add_argument("--bytes", action="store_true", help="what every baseline moves, in place of times")
    parser.add_argument("--json", action="store_true", help="print one object instead of a table")
    chosen = parser.parse_args()
    known = ZOO if chosen.bytes else ROWS
    names = [name for name in known if any(part.lower() in name.lower() for part in chosen.rows.split(","))]
    if not names:
        parser.error(f"no row has {chosen.rows!r} in its name; rows are {', '.join(known)}")
    progress = Console(stderr=True, width=160)
    found: list[dict[str, Any]] = []
    try:
        for name in names:
            found.append(moved(name, progress) if chosen.bytes else compared(name, chosen.seconds, progress))
            print(json.dumps(found[-1]), file=sys.stderr)
    except KeyboardInterrupt:
        progress.print("stopped; this is what there is")
    if chosen.json:
        json.dump({"rows": found}, sys.stdout, indent=1)
        print()
        return
    console = Console(width=190)
    if chosen.bytes:
        console.print(bytes_table(found))
        console.print("Data parallelism, which keeps all parameters on every worker, may move less and stores more.")
        return
    console.print(comparison_table(found))
    first = sum(one["tofu_first"] for one in found)
    console.print(f"Tofu's order, ahead of all but the ideal, in {first} of {len(found)} rows")


if __name__ == "__main__":
    main()
