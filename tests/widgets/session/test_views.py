"""Widgets: what reaches the page and when, what views share, and that a cell which runs again ends what it showed."""

import gc
import queue
import time
from weakref import ref

import pytest
from jupyter_client.manager import start_new_kernel

import widgets
from planner import zoo
from planner.capture import capture
from planner.errors import StowageError
from tests.widgets.session.message_recorder import MessageRecorder

SMALL = "mlp:layers=3"


def test_a_view_that_was_never_shown_goes_with_its_last_reference() -> None:
    view = widgets.Workbench(zoo.load(SMALL), budget="60%")
    gone, session = ref(view), ref(view.session)
    assert view.plan is not None
    del view
    gc.collect()
    assert (gone(), session()) == (None, None)


def test_traits_hold_the_state_of_the_interface_and_no_data() -> None:
    view = widgets.Workbench(zoo.load(SMALL), budget="60%")
    assert view.plan is not None
    state = view.get_state()
    assert sum(len(str(value)) for name, value in state.items() if name not in {"_esm", "_script"}) < 1000
    view.close()


def test_views_of_one_graph_are_linked_and_views_of_a_view_share_its_session() -> None:
    step = zoo.load(SMALL)
    bench = widgets.Workbench(step)
    inner, alone = widgets.MemoryMap(bench), widgets.GraphView(bench.graph)
    other = widgets.GraphView(capture(zoo.load(SMALL)))
    assert inner.session is bench.session
    assert alone.session is not bench.session
    assert bench.link == inner.link == alone.link != other.link
    with pytest.raises(StowageError, match="set them there"):
        widgets.StreamView(bench, budget="50%")
    inner.close()
    assert bench.plan is not None
    for view in (bench, alone, other):
        view.close()


def test_a_budget_and_a_machine_are_set_like_attributes() -> None:
    bench = widgets.Workbench(zoo.load(SMALL), budget="60%")
    bench.budget = "50%"
    plan = bench.plan
    assert plan is not None
    assert plan.budget_bytes == bench.budget
    bench.machine = "laptop"
    assert bench.plan is not None
    assert bench.machine.name == "laptop"
    bench.start_search(0.1)
    recorder = MessageRecorder(bench.session)
    recorder.wait("search", lambda search: search["state"] in {"paused", "done"})
    bench.close()


class Notebook:
    """A kernel that runs cells as JupyterLab has it run them."""

    def __init__(self) -> None:
        self.manager, self.client = start_new_kernel(kernel_name="python3")

    def run(self, code: str, cell: str) -> str:
        """What a cell prints; errors fail."""
        sent = self.client.session.msg(
            "execute_request",
            {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False},
            metadata={"cellId": cell},
        )
        self.client.shell_channel.send(sent)
        printed = ""
        while True:
            said = self.client.get_iopub_msg(timeout=240)
            if said["parent_header"].get("msg_id") != sent["header"]["msg_id"]:
                continue
            if said["msg_type"] == "stream":
                printed += said["content"]["text"]
            assert said["msg_type"] != "error", said["content"]
            if said["msg_type"] == "status" and said["content"]["execution_state"] == "idle":
                return printed

    def ask(self, comm: str, wanted: dict) -> None:
        data = {"method": "custom", "content": wanted}
        self.client.shell_channel.send(self.client.session.msg("comm_msg", {"comm_id": comm, "data": data}))

    def hear(self, kind: str, state: str | None = None, evaluations: int = 0) -> dict:
        """The next message of a kind that a widget sends to the page, of that state, with so many evaluations."""
        until = time.monotonic() + 240
        while time.monotonic() < until:
            try:
                said = self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            content = said["content"].get("data", {}).get("content", {}) if said["msg_type"] == "comm_msg" else {}
            told = content.get("kind") == kind and state in {None, content.get("state")}
            if told and content.get("evaluations", 0) >= evaluations:
                return content
        raise AssertionError(f"no {kind} {state or ''} within four minutes")


def test_in_a_kernel_the_cell_returns_the_page_asks_and_an_interrupt_or_the_next_run_of_the_cell_ends_it_all() -> None:
    book = Notebook()
    try:
        book.run("import threading, widgets; from planner import zoo", "a")
        model = "zoo.load('gpt:layers=2,hidden=64,sequence=32,optimizer=adam')"
        cell = f"bench = widgets.Workbench({model}, budget='30%')\nbench"
        book.run(cell, "b")
        comm = book.run("print(bench.model_id, bench.plan.method)", "c").split()[0]
        book.ask(comm, {"do": "ready", "number": 7})
        assert book.hear("heard")["number"] == 7
        book.hear("graph")
        book.ask(comm, {"do": "search", "number": 8})
        book.hear("search", "running")
        book.manager.interrupt_kernel()
        said = book.hear("search", "cancelled")
        assert said["state"] == "cancelled"
        book.ask(comm, {"do": "resume", "number": 9})
        book.hear("search", "running", 1)
        book.run("old = bench.session.search; threads = [t for t in threading.enumerate() if 'stowage' in t.name]", "c")
        book.run(cell.replace("30%", "40%"), "b")
        printed = book.run(
            "import time; time.sleep(3); print(old.progress.state, sum(t.is_alive() for t in threads))", "c"
        )
        assert printed.split() == ["cancelled", "0"]
    finally:
        book.client.stop_channels()
        book.manager.shutdown_kernel(now=True)
