"""Detection of changed objects in many containers, cheap enough to run before every step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import is_

from planner.guards.containers import Container, DictItems, Items
from planner.guards.dict_versions import classes, versions


class ContainerWatch:
    """Records the contents of containers, and tells whether they have changed.

    Nearly all containers are dicts of modules, and their contents are read only if any of them was written to.

    Args:
        containers, objects: those that a `Reach` found.
    """

    def __init__(self, containers: Sequence[Container], objects: Sequence[object] = ()) -> None:
        self._objects = objects
        self._tables = [container.thing for container in containers if isinstance(container, DictItems)]
        lists = [container for container in containers if isinstance(container, Items) and container.kind is list]
        self._lists: list[list[object]] = [container.thing for container in lists]  # type: ignore[misc]
        self._others = [
            container for container in containers if not isinstance(container, DictItems) and container not in lists
        ]
        self._versions, self._classes = versions(self._tables), classes(objects)
        self.note()

    def note(self) -> None:
        """Record the current contents as the expected ones."""
        self._versions.note()
        self._classes.note()
        self._kinds = list(map(type, self._objects))
        self._sizes = list(map(dict.__len__, self._tables))
        self._keys = list(chain.from_iterable(map(dict.keys, self._tables)))
        self._values = list(chain.from_iterable(map(dict.values, self._tables)))
        self._lengths = list(map(list.__len__, self._lists))
        self._items = list(chain.from_iterable(map(list.__iter__, self._lists)))
        self._contents = [container.contents() for container in self._others]

    def changed(self) -> bool:
        """Whether any container holds another object, or the same object under another name."""
        try:
            if self._versions.changed():
                if self._tables_differ():
                    return True
                self._versions.note()  # the same values were written again
            return (
                (self._classes.changed() and not _same(map(type, self._objects), self._kinds))
                or self._lists_differ()
                or any(
                    self._differs(container, before)
                    for container, before in zip(self._others, self._contents, strict=True)
                )
            )
        except RuntimeError:  # another thread is changing one
            return True

    def _tables_differ(self) -> bool:
        return (
            list(map(dict.__len__, self._tables)) != self._sizes
            or not _same(chain.from_iterable(map(dict.values, self._tables)), self._values)
            or not _same(chain.from_iterable(map(dict.keys, self._tables)), self._keys)
        )

    def _lists_differ(self) -> bool:
        return list(map(list.__len__, self._lists)) != self._lengths or not _same(
            chain.from_iterable(map(list.__iter__, self._lists)), self._items
        )

    def _differs(self, container: Container, before: tuple[object, ...]) -> bool:
        now = container.contents()
        return len(now) != len(before) or not _same(now, before)


def _same(left: Iterable[object], right: Sequence[object]) -> bool:
    """Whether two sequences of the same length hold the same objects."""
    return all(map(is_, left, right))
