"""Messages from Python to the page."""

from widgets.messages.graph_message import graph_message
from widgets.messages.machine_message import label_of, machine_message
from widgets.messages.message import Message, unpack
from widgets.messages.plan_message import PlanStatus, plan_message
from widgets.messages.run_message import RunState, run_message
from widgets.messages.search_message import search_message
from widgets.messages.state_messages import (
    budget_message,
    compare_message,
    export_message,
    front_message,
    loading_message,
    notice_message,
    refused_message,
    samples_message,
)

__all__ = [
    "Message",
    "PlanStatus",
    "RunState",
    "budget_message",
    "compare_message",
    "export_message",
    "front_message",
    "graph_message",
    "label_of",
    "loading_message",
    "machine_message",
    "notice_message",
    "plan_message",
    "refused_message",
    "run_message",
    "samples_message",
    "search_message",
    "unpack",
]  # fmt: skip
