"""Whether anything in many containers is another object than before, cheaply enough to ask before every step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import is_

from planner.capture.guards.containers import Container, DictItems, Items
from planner.capture.guards.versions import classes, versions


class ContainerWatch:
    """Notes what containers hold, and says whether they hold it still.

    Nearly all containers are dicts of modules, and are looked into only if any of them was written to.

    Args:
        containers, objects: as a `Reach` found them.
    """

    def __init__(self, containers: Sequence[Container], objects: Sequence[object] = ()) -> None:
        self._objects = objects
        self._tables = [one.thing for one in containers if isinstance(one, DictItems)]
        lists = [one for one in containers if isinstance(one, Items) and one.kind is list]
        self._lists: list[list[object]] = [one.thing for one in lists]  # type: ignore[misc]
        self._others = [one for one in containers if not isinstance(one, DictItems) and one not in lists]
        self._versions, self._classes = versions(self._tables), classes(objects)
        self.note()

    def note(self) -> None:
        """Take what they hold now for what they are to hold."""
        self._versions.note()
        self._classes.note()
        self._kinds = list(map(type, self._objects))
        self._sizes = list(map(dict.__len__, self._tables))
        self._keys = list(chain.from_iterable(map(dict.keys, self._tables)))
        self._values = list(chain.from_iterable(map(dict.values, self._tables)))
        self._lengths = list(map(list.__len__, self._lists))
        self._items = list(chain.from_iterable(map(list.__iter__, self._lists)))
        self._contents = [one.contents() for one in self._others]

    def changed(self) -> bool:
        """Whether any holds something else, or the same under another name."""
        try:
            if self._versions.changed():
                if self._tables_differ():
                    return True
                self._versions.note()  # the same was put where it was
            return (
                (self._classes.changed() and not _same(map(type, self._objects), self._kinds))
                or self._lists_differ()
                or any(self._differs(one, before) for one, before in zip(self._others, self._contents, strict=True))
            )
        except RuntimeError:  # another thread changes one just now
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

    def _differs(self, one: Container, before: tuple[object, ...]) -> bool:
        now = one.contents()
        return len(now) != len(before) or not _same(now, before)


def _same(these: Iterable[object], those: Sequence[object]) -> bool:
    """Whether objects are the same ones, of two rows of one length."""
    return all(map(is_, these, those))
