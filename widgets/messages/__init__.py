"""Messages from Python to the page."""

from widgets.messages.graph_message import graph_message
from widgets.messages.machine_message import label_of, machine_message
from widgets.messages.message import Message, changed, unpack
from widgets.messages.message_kind import (
    MessageKind,
    Rest,
    at_rest,
    forget_kinds,
    in_order,
    kind_of,
    register_kinds,
)
from widgets.messages.partition_message import FoundPartition, blocks_message, partition_at_rest, partition_message
from widgets.messages.plan_message import PlanStatus, plan_message
from widgets.messages.plans_message import difference_message, plans_message
from widgets.messages.run_message import RunState, run_at_rest, run_message
from widgets.messages.search_message import search_at_rest, search_message
from widgets.messages.state_messages import (
    budget_at_rest,
    budget_message,
    compare_message,
    export_message,
    front_at_rest,
    front_message,
    loading_at_rest,
    loading_message,
    notice_message,
    refused_message,
    samples_message,
)
from widgets.messages.worker_message import kind_of_worker, of_worker, worker_at_rest, worker_message

__all__ = [
    "FoundPartition",
    "Message",
    "MessageKind",
    "PlanStatus",
    "Rest",
    "RunState",
    "at_rest",
    "blocks_message",
    "budget_at_rest",
    "budget_message",
    "changed",
    "compare_message",
    "difference_message",
    "export_message",
    "forget_kinds",
    "front_at_rest",
    "front_message",
    "graph_message",
    "in_order",
    "kind_of",
    "kind_of_worker",
    "label_of",
    "loading_at_rest",
    "loading_message",
    "machine_message",
    "notice_message",
    "of_worker",
    "partition_at_rest",
    "partition_message",
    "plan_message",
    "plans_message",
    "refused_message",
    "register_kinds",
    "run_at_rest",
    "run_message",
    "samples_message",
    "search_at_rest",
    "search_message",
    "unpack",
    "worker_at_rest",
    "worker_message",
]  # fmt: skip
