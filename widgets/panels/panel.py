"""The panels as widgets: each holds a session and forwards its messages to the page, which draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from weakref import ref

import anywidget
import traitlets

from planner.errors import StowageError
from planner.machine import Machine
from planner.memory import read_buffers
from planner.progress import ShowProgress, reporting
from widgets.fallback import fallback_view, save_page
from widgets.messages import Message
from widgets.page import packed_script, script
from widgets.panels import cell_tracking
from widgets.panels.links import link_of
from widgets.session import Session, buffers_as_step, in_message


class Panel(anywidget.AnyWidget):
    """A view of a step, a graph or a plan.

    It opens a connection to the page when it is first shown; before that it needs no closing.

    Args:
        source: a step, a graph, a pair of one of these and a plan for it, or another view whose session is shared.
        machine, budget, seed, device: as in `Session`; not for another view, which has its own.

    Raises:
        StowageError: the source cannot be shown, or the machine or budget is invalid.
    """

    _esm = script("lazy_loader")
    _script = traitlets.Unicode(packed_script()).tag(sync=True)
    #: Names of the panels that are drawn.
    parts: ClassVar[tuple[str, ...]] = ()

    panels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    link = traitlets.Unicode().tag(sync=True)
    #: The tab last opened from Python, and how many times one was.
    tab = traitlets.Tuple(traitlets.Unicode(), traitlets.Int(), default_value=("", 0)).tag(sync=True)
    #: Static HTML shown in place of the widget where there is no kernel.
    fallback = traitlets.Unicode().tag(sync=True)

    def __init__(
        self, source: Any, *, machine: str | Machine | None = None, budget: str | int | None = None, seed: int = 0,
        device: str = "cpu",
    ) -> None:  # fmt: skip
        if isinstance(source, Panel):
            if machine is not None or budget is not None:
                raise StowageError("a view of another view shows the same machine and budget: set them there")
            self.session: Session = source.session
            link = source.link
        else:
            self.session = Session(source, machine=machine, budget=budget, seed=seed, device=device)
            link = link_of(*self.session.about)
        self._owner: Panel | None = source if isinstance(source, Panel) else None
        self._stop_listening: Callable[[], None] | None = None
        self._stop_drawing: Callable[[], None] | None = None
        self._shown = False
        super().__init__(panels=list(self.parts), link=link)
        self.on_msg(_handle_message)

    def open(self) -> None:
        """Open the connection to the page; does nothing before the widget is shown."""
        if self._shown:
            super().open()

    @property
    def model_id(self) -> str:
        """The widget's id in the page; read when it is shown or put into a box, so this opens the connection."""
        self._shown = True
        self.open()
        return str(super().model_id)

    def close(self) -> None:
        """Close the connection to the page; also closes the session unless the session belongs to another view."""
        self._stop_listening_now()
        if getattr(self, "_owner", self) is None:
            self.session.close()

    def save(self, path: str | Path) -> None:
        """Save this view as one HTML file that needs no kernel and no network; waits for the first plan.

        Raises:
            StowageError: the step cannot be captured, or the file cannot be written.
        """
        _ = self.session.plan
        save_page(self.session.messages(), path, tuple(self.panels))

    def handle_request(self, request: Mapping[str, Any]) -> None:
        """Answer a request of the page; anything that is not a mapping is ignored."""
        if not isinstance(request, Mapping):
            return
        view = request.get("view")
        if "number" in request:
            self.send({"kind": "heard", "number": request["number"], "view": view})
        if request.get("do") == "ready":
            if self._stop_listening is None:
                self._stop_listening = self.session.listen(_publisher_to(self))
            self.session.replay(_publisher_to(self, view))
        self.session.request(request)

    def close_views(self) -> None:
        """Close the connection, and stop background work if no other view is shown; called when its cell runs again."""
        self._stop_listening_now()
        self.session.suspend()

    def _stop_listening_now(self) -> None:
        for name in ("_stop_listening", "_stop_drawing"):
            stop = getattr(self, name, None)  # absent if the constructor failed
            if stop is not None:
                stop()
                setattr(self, name, None)
        if getattr(self, "comm", None) is not None:
            self.layout.close()
            super().close()
            self.__dict__.pop("_repr_mimebundle_", None)  # it may be shown again
            self._model_id, self._shown = None, False

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        cell_tracking.shown(self, _closing(self))
        data, metadata = bundle
        known = fallback_view(self.session.messages())
        self.fallback = known["text/html"]
        if self._stop_drawing is None and all(each.kind != "plan" for each in self.session.messages()):
            self._stop_drawing = self.session.listen(_drawing(self), replay=True)
        return {**data, **known}, metadata


def _handle_message(panel: Panel, content: Mapping[str, Any], _: Any) -> None:
    in_message()
    panel.handle_request(content)


def _publisher_to(panel: Panel, view: Any = None) -> Callable[[Message], None]:
    """A function that sends messages to a panel, in one view or in all; does not keep the panel alive."""
    known = ref(panel)
    to = {} if view is None else {"view": view}

    def publish(message: Message) -> None:
        panel = known()
        if panel is not None:
            panel.send({**message.content, **to}, list(message.buffers))

    return publish


def _drawing(panel: Panel) -> Callable[[Message], None]:
    """A listener that redraws the static picture of a panel when the first plan is known."""
    known = ref(panel)

    def draw() -> None:
        panel = known()
        if panel is not None:
            panel.fallback = fallback_view(panel.session.messages())["text/html"]

    undrawn = [draw]

    def draw_once(message: Message) -> None:
        if message.kind == "plan" and undrawn:
            Thread(target=undrawn.pop(), name="stowage picture", daemon=True).start()

    return draw_once


def _closing(panel: Panel) -> Callable[[], None]:
    known = ref(panel)

    def close_views() -> None:
        panel = known()
        if panel is not None:
            panel.close_views()

    return close_views


class GraphView(Panel):
    """The module graph: boxes that open and fold, and the schedule."""

    parts = ("graph", "selection")


class MemoryMap(Panel):
    """Addresses over time, or bytes by kind, and what holds the peak."""

    parts = ("memory", "holders", "selection")

    @classmethod
    def from_csv(cls, path: str | Path, *, progress: ShowProgress = True) -> MemoryMap:
        """A map of the buffers in a CSV file, as `planner pack --out` writes it; a unit of its time is shown as 1 µs.

        Args:
            path: of the file, `id,lower,upper,size`, with a column `offset`, or packed here; `gaps` are taken too.
            progress: as in `planner.capture`; packing thousands of buffers takes half a minute.

        Raises:
            StowageError: the file cannot be read, or two buffers that are alive at once share a byte.
        """
        with reporting(progress) as report:
            report(0.0, f"reading {Path(path).name}")
            buffers = read_buffers(path)
            report(0.1, f"{'packing' if buffers.offsets is None else 'checking'} {len(buffers.ids):,} buffers")
            graph, plan, machine = buffers_as_step(buffers, Path(path).name)
        return cls((graph, plan), machine=machine, budget=plan.budget_bytes)


class StreamView(Panel):
    """The three streams: compute, copies out, copies in, and what compute waits for."""

    parts = ("streams", "selection")


class SearchPanel(Panel):
    """A search in progress, plans for other budgets, and two plans side by side."""

    parts = ("search",)


class PartitionView(Panel):
    """A partition over workers: splits to pin, the blocks of a tensor, what moves, and what each worker takes."""

    parts = ("partition",)


class RunPanel(Panel):
    """A run in progress: measured and predicted memory, step times, and whether the bits agree."""

    parts = ("run",)
