"""A partition for the page, and where the blocks of one of its tensors are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from widgets.info import PartitionSplits, TensorBlocks, WorkerPeaks
from widgets.messages.message import Message, changed, message
from widgets.messages.message_kind import Rest


@dataclass(frozen=True, eq=False)
class FoundPartition:
    """A partition that was found, with what the page shows of it.

    Args:
        number: which one, counted from 1.
        pins: how many splits of levels were fixed.
        splits, peaks: how tensors are split, and what each worker takes.
        storages: by row of `splits`, the storages of its tensors.
        bytes_per_level: what all workers together receive in a step.
        gap_percent: how much more than the least possible it may move; None if that is not known.
        added_bytes: how much more it moves than the one without pins; None if that is not known.
        limit_bytes: what each worker may take; None for as little as splitting gives.
    """

    number: int
    pins: int
    splits: PartitionSplits
    peaks: WorkerPeaks
    storages: tuple[tuple[int, ...], ...]
    bytes_per_level: tuple[float, ...]
    gap_percent: float | None
    added_bytes: float | None
    limit_bytes: int | None

    @property
    def row(self) -> dict[str, Any]:
        """It in a list of several."""
        return {
            "number": self.number, "mesh": self.splits.mesh, "pins": self.pins, "bytes": sum(self.bytes_per_level),
            "most_bytes": self.peaks.most, "limit_bytes": self.limit_bytes,
        }  # fmt: skip


def partition_message(
    state: str,
    workers: int,
    *,
    doing: str = "",
    share: float | None = None,
    shown: FoundPartition | None = None,
    found: Sequence[FoundPartition] = (),
    pins: Mapping[int, Sequence[int | str | None]] | None = None,
    sentence: str = "",
    limit_bytes: int | None = None,
    least_bytes: int | None = None,
    resumable: bool = False,
) -> Message:
    """Pack a search for partitions, and the partition that is shown.

    Args:
        state: `"running"`, `"cancelled"`, `"paused"`, `"done"` or `"failed"`.
        workers: how many it is for.
        doing, share: the current activity, and the share of it that is done.
        shown: the partition that is shown, None before there is any.
        found: all that were found.
        pins: by row of its splits, what is fixed at each level: a dimension, `"replicated"`, or None.
        sentence: comment on the state.
        limit_bytes: what each worker may take; None for as little as splitting gives.
        least_bytes: where nothing meets that limit, the least that would do, if it is known.
        resumable: whether a search that was stopped has something left to try.
    """
    return message("partition", {
        "state": state, "workers": workers, "doing": doing, "share": share, "sentence": sentence,
        "limit_bytes": limit_bytes, "least_bytes": least_bytes, "resumable": resumable,
        "found": [each.row for each in found],
        "shown": None if shown is None else _shown(shown, pins or {}),
    })  # fmt: skip


def blocks_message(number: int, storage: int, blocks: TensorBlocks) -> Message:
    """Pack the blocks of a tensor.

    Args:
        number: of the partition.
        storage: of the tensor.
        blocks: which worker has which.
    """
    return message("blocks", {
        "number": number, "storage": storage, "name": blocks.name, "shape": blocks.shape, "bytes": blocks.bytes,
        "workers": blocks.workers, "axes": blocks.axes, "sizes": blocks.sizes, "whole": blocks.whole,
        "ways": blocks.ways, "summary": blocks.summary,
        "blocks": [[*block.rows, *block.columns, list(block.workers)] for block in blocks.blocks],
    })  # fmt: skip


def partition_at_rest(sent: Message, rest: Rest, _: Mapping[str, Message]) -> Message:
    """A search that is still running as one that was stopped."""
    if sent.content["state"] != "running":
        return sent
    why = "It was closed" if rest == "closed" else "The page was saved"
    return changed(sent, state="cancelled", doing="", share=None, sentence=f"{why} while this search went on.")


def _shown(shown: FoundPartition, pins: Mapping[int, Sequence[int | str | None]]) -> dict[str, Any]:
    splits, peaks = shown.splits, shown.peaks
    free = [None] * len(splits.mesh)
    return {
        **shown.row,
        "bytes_per_level": shown.bytes_per_level,
        "gap_percent": shown.gap_percent,
        "added_bytes": shown.added_bytes,
        "single_bytes": peaks.single_bytes,
        "others": splits.others,
        "peaks": [[row.label, row.peak_bytes, list(row.workers)] for row in peaks.rows],
        "rows": [
            {
                "name": row.name, "kind": row.group, "shape": row.shape, "bytes": row.bytes, "ways": row.ways,
                "tensors": len(row.tensors), "storages": shown.storages[number], "pins": pins.get(number, free),
            }
            for number, row in enumerate(splits.rows)
        ],
    }  # fmt: skip
