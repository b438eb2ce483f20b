"""What holds the memory at one moment: storages put together by module and by what they are for."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from planner.graph import Graph, Module, module_tree
from widgets.info.groups import GROUP_OF, Group
from widgets.info.stays import Stays

_MOST_PARTS = 10


@dataclass(frozen=True, slots=True)
class Holder:
    """Storages of one module and one group.

    Args:
        module: path, or `""` for what no module inside the model owns.
        group: what they are for.
        storages: how many.
        bytes: of all together.
    """

    module: str
    group: Group
    storages: int
    bytes: int


def get_holders(graph: Graph, stays: Stays, moment: float) -> tuple[Holder, ...]:
    """What is on the device at a moment, the largest first; every byte present is in exactly one of them."""
    present = stays.present(moment)
    sizes = {int(stays.storage[stay]): int(stays.bytes[stay]) for stay in present}
    owner = _owners(module_tree(graph), sizes)
    held: dict[tuple[str, Group], list[int]] = defaultdict(list)
    for storage, size in sizes.items():
        held[owner[storage], GROUP_OF[graph.storages[storage].kind]].append(size)
    holders = [Holder(module, group, len(each), sum(each)) for (module, group), each in held.items()]
    return tuple(sorted(holders, key=lambda holder: (-holder.bytes, holder.module, holder.group)))


def _owners(root: Module, sizes: dict[int, int]) -> dict[int, str]:
    """The part of the model that each storage is counted with.

    Parts are the root's children. The largest is taken apart as long as it holds more than half and its children differ
    and are few: a wrapper says nothing, and a list of equal layers says less than the list as one.
    """

    def weight(module: Module) -> int:
        return sum(sizes.get(storage, 0) for storage in module.all_storages)

    whole = [root, *root.children]
    parts = {root.path: root.storages} | {child.path: child.all_storages for child in root.children}
    while True:
        largest = max(whole[1:], key=weight, default=None)
        if largest is None or 2 * weight(largest) <= sum(sizes.values()) or len(largest.children) < 1:
            break
        alike = len(largest.children) > 1 and len({child.alike for child in largest.children}) == 1
        if alike or len(whole) + len(largest.children) > _MOST_PARTS:
            break
        whole.remove(largest)
        whole += largest.children
        parts[largest.path] = largest.storages
        parts |= {child.path: child.all_storages for child in largest.children}
    return {storage: path for path, storages in parts.items() for storage in storages}
