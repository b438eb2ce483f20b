"""The name of a step, and the few facts that fit beside it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from planner.graph import Graph, Kind
from widgets.info.argument_types import require_graph

_OPTIMIZERS = {"sgd": "SGD", "momentum": "SGD with momentum", "adam": "Adam", "adamw": "AdamW"}
_ALONE = {"mode"}


@dataclass(frozen=True, slots=True)
class StepFacts:
    """A step in a few words.

    Args:
        name: short name.
        phrases: such as `"depth 152"` and `"Adam"`.
        samples: samples in the batch; 0 if its tensors disagree.
        parameters: number of elements in all parameters together.
    """

    name: str
    phrases: tuple[str, ...]
    samples: int
    parameters: int


def get_step_facts(graph: Graph, phrases: tuple[str, ...] = ()) -> StepFacts:
    """Read the facts from a graph; a name in the zoo's form, `"mlp:layers=4,optimizer=adam"`, is parsed.

    Args:
        graph: the step.
        phrases: further facts.

    Raises:
        StowageError: it is no graph.
    """
    require_graph(graph)
    name, _, settings = graph.name.partition(":")
    pairs = [setting.partition("=") for setting in settings.split(",")] if settings else []
    if not all(between == "=" and key and value for key, between, value in pairs):
        name, pairs = graph.name, []
    said = [_phrase(key, value) for key, _, value in pairs]
    said += [phrase for phrase in phrases if not any(known.startswith(phrase) for known in said)]
    first = {tensor.storage: tensor for tensor in reversed(graph.tensors)}
    shapes = {s.id: first[s.id].shape for s in graph.storages if s.id in first}
    batch = {shapes[s.id][0] for s in graph.storages if s.kind is Kind.INPUT and shapes.get(s.id)}
    counts = [prod(shapes[s.id]) for s in graph.storages if s.kind is Kind.PARAMETER and s.id in shapes]
    return StepFacts(name, tuple(said), next(iter(batch)) if len(batch) == 1 else 0, sum(counts))


def _phrase(key: str, value: str) -> str:
    if key == "optimizer":
        return _OPTIMIZERS.get(value, value)
    return value if key in _ALONE else f"{key} {value}"
