"""Batches of any type are taken apart and put together again, or refused by the path of what hides tensors."""

from __future__ import annotations

import types
import weakref
from collections import ChainMap, OrderedDict, UserDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import BatchEncoding
from transformers.modeling_outputs import CausalLMOutput

from planner.capture import capture
from planner.capture.trace.batch_invariance import unused_leaves
from planner.errors import StowageError
from planner.step import TrainStep
from planner.step.batches import Form, batch_key, cut, rebuilt, tensors_of
from planner.step.batches.poisoned_values import PoisonError, Used, poisoned

Pair = namedtuple("Pair", "x y")


@dataclass(frozen=True)
class Frozen:
    x: Tensor
    n: int = 3


@dataclass(frozen=True, slots=True)
class Slotted:
    x: Tensor
    n: int = 3


class Storage(MutableMapping[str, Any]):
    """As that of a `Data` of PyTorch Geometric: it knows its owner by a weak reference."""

    def __init__(self, owner: Any, mapping: dict[str, Any]) -> None:
        self._mapping, self._parent = mapping, weakref.ref(owner)

    def __getitem__(self, key: str) -> Any:
        return self._mapping[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._mapping[key] = value

    def __delitem__(self, key: str) -> None:
        del self._mapping[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping)

    def __len__(self) -> int:
        return len(self._mapping)


class Data:
    def __init__(self, **values: Any) -> None:
        self.__dict__["_store"] = Storage(self, values)

    @property
    def boom(self) -> Tensor:
        raise RuntimeError("a property must not be read")


class Bound:
    def __init__(self) -> None:
        self.x, self.read = torch.ones(2), self.get

    def get(self) -> Tensor:
        return self.x


class Unfriendly:
    """Nothing about it can be asked for."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("it compares with nothing")

    __hash__ = None  # type: ignore[assignment]


def unfriendly() -> Unfriendly:
    made = Unfriendly()
    object.__setattr__(made, "x", torch.ones(2))
    return made


def cyclic() -> dict[str, Any]:
    made: dict[str, Any] = {"x": torch.ones(2)}
    made["self"] = made
    return made


def one() -> Tensor:
    return torch.ones(2)


KINDS: list[tuple[Any, list[str]]] = [
    (one(), ["batch"]),
    ([one(), 2], ["batch/0"]),
    (Pair(one(), "y"), ["batch/0"]),
    (OrderedDict(b=one(), a=one()), ["batch/b", "batch/a"]),
    (defaultdict(list, a=one()), ["batch/a"]),
    (deque([one()], maxlen=3), ["batch/0"]),
    (UserDict(a=one()), ["batch/a"]),
    (ChainMap({"a": one()}, {"b": one()}), ["batch/maps/0/a", "batch/maps/1/b"]),
    (types.MappingProxyType({"a": one()}), ["batch/a"]),
    (types.SimpleNamespace(a=one(), n=None), ["batch/a"]),
    (BatchEncoding({"input_ids": one(), "attention_mask": one()}), ["batch/input_ids", "batch/attention_mask"]),
    (CausalLMOutput(logits=one()), ["batch/logits"]),
    (torch.ones(2, 3).max(0), ["batch/0", "batch/1"]),
    (Frozen(one()), ["batch/x"]),
    (Slotted(one()), ["batch/x"]),
    (Data(x=one(), edges=one()), ["batch/_store/x", "batch/_store/edges"]),
    (Bound(), ["batch/x"]),
    (unfriendly(), ["batch/x"]),
    (cyclic(), ["batch/x"]),
    ({"a/b": one(), "a": {"b": one()}}, ["batch/a/b", "batch/a/b (2)"]),
]


@pytest.mark.parametrize(("batch", "names"), KINDS, ids=lambda value: type(value).__name__)
def test_a_batch_is_rebuilt_with_other_tensors_and_everything_else_as_it_was(batch: Any, names: list[str]) -> None:
    before = tensors_of(batch)
    other = rebuilt(batch, {name: tensor * 2 for name, tensor in before.items()})
    assert type(other) is type(batch)
    assert Form(batch).change(Form(other)) == ""
    assert list(before) == names
    after = tensors_of(other)
    assert all(torch.equal(after[name], before[name] * 2) for name in names)


def test_what_refers_to_the_batch_refers_to_the_rebuilt_one() -> None:
    bound, data, cycle, output = Bound(), Data(x=one()), cyclic(), CausalLMOutput(logits=one())
    again = rebuilt(bound, {"batch/x": torch.zeros(2)})
    assert torch.equal(again.read(), torch.zeros(2))
    assert bound.read() is bound.x
    data = rebuilt(data, {"batch/_store/x": torch.zeros(2)})
    assert data.__dict__["_store"]._parent() is data
    cycle = rebuilt(cycle, {"batch/x": torch.zeros(2)})
    assert cycle["self"] is cycle
    output = rebuilt(output, {"batch/logits": torch.zeros(2)})
    assert output["logits"] is output.logits


class Closing:
    def __init__(self) -> None:
        self.x = one()

    def __del__(self) -> None:
        pass


def nested(depth: int) -> Any:
    return one() if depth == 0 else [nested(depth - 1)]


HIDING: list[tuple[Callable[[], Any], str]] = [
    (lambda: (x for x in [one()]), "batch is a generator, which gives its values once"),
    (lambda: {"s": {one()}}, "batch/s is a set, which holds tensors"),
    (lambda: {one(): 1}, "batch has a tensor in one of its keys"),
    (lambda: {"m": nn.Linear(2, 2)}, r"batch/m is a module \(Linear\)"),
    (lambda: {"f": partial(torch.add, one())}, "batch/f is a partial, which holds tensors"),
    (lambda: {"f": (lambda x=one(): x)}, "batch/f is a function, which holds tensors"),  # noqa: B008
    (lambda: {"e": ValueError(one())}, "batch/e is a ValueError, which holds tensors"),
    (lambda: {"a": np.array([one(), None], dtype=object)}, "batch/a is a ndarray, which holds tensors"),
    (lambda: {"a": np.ma.array([1, 2])}, "batch/a is a MaskedArray"),
    (lambda: nn.utils.rnn.pack_sequence([torch.ones(2, 1)]), "batch is a PackedSequence.* padded tensor"),
    (lambda: {"x": torch.nested.nested_tensor([one()], layout=torch.jagged)}, "batch/x is a nested tensor.*mask"),
    (lambda: {"x": torch.ones(2, dtype=torch.complex64).conj()}, "batch/x is lazily conjugated"),
    (lambda: {"c": Closing()}, "batch/c is a Closing, which cleans up"),
    (lambda: {"d": nested(300)}, "the batch is nested more than 100 deep"),
    (lambda: {"n": [[number] for number in range(30_000)]}, "more than 20,000 values.*batch/n/"),
]


@pytest.mark.parametrize(("make", "said"), HIDING, ids=[said[:24] for _, said in HIDING])
def test_what_hides_tensors_is_refused_by_its_path_and_soon(make: Callable[[], Any], said: str) -> None:
    batch, begun = make(), process_time()
    with pytest.raises(StowageError, match=said):
        capture(TrainStep(nn.Linear(2, 2), batch, loss=lambda model, b: model(torch.ones(2)).sum()))
    assert process_time() - begun < 10


def test_a_weight_in_the_batch_is_refused() -> None:
    model = nn.Linear(2, 2)
    with pytest.raises(StowageError, match="batch/w shares memory with parameter weight"):
        capture(TrainStep(model, {"w": model.weight}, loss=lambda model, b: b["w"].sum()))


VALUES = [
    float("nan"),
    1,
    True,
    1.0,
    0.0,
    -0.0,
    "1",
    b"1",
    None,
    np.float64(1),
    np.array([1.0]),
    [1, 2],
    (1, 2),
    [1, 2.0],
]


def test_the_key_of_a_batch_tells_values_apart_and_nan_from_nothing() -> None:
    keys = [batch_key({"x": one(), "v": value}) for value in VALUES]
    again = [batch_key({"x": torch.zeros(2), "v": value}) for value in [float("nan"), *VALUES[1:]]]
    assert [[a == b for b in again] for a in keys] == [[a is b for b in keys] for a in keys]
    assert len(set(keys)) == len(VALUES)


def test_the_key_of_a_batch_is_of_what_its_tensors_are() -> None:
    x = torch.ones(2, 3, 4, 4)
    given = [x, x.double(), x[:1], x.to(memory_format=torch.channels_last), x.clone().requires_grad_(), nn.Parameter(x)]
    assert len({batch_key([value, x.clone()]) for value in given}) == len(given)
    assert batch_key([x, x]) != batch_key([x, x.clone()])
    assert batch_key([x[0], x[1]]) == batch_key([x[0].clone(), x[1].clone()]), "beside each other is not together"


def test_an_object_that_nobody_can_read_is_known_by_its_identity() -> None:
    lock = object()
    assert batch_key({"l": lock}) == batch_key({"l": lock}) != batch_key({"l": object()})
    assert Form({"l": lock, "n": 1, "f": len, "c": Data}).opaque == ["batch/l"]


def test_micro_batches_cut_rows_and_what_has_an_entry_per_row() -> None:
    batch = {"x": torch.arange(8).view(4, 2), "y": (torch.tensor(3), [torch.arange(4)]), "ids": ["a", "b", "c", "d"],
             "spans": [[1, 2], [3], [], [4]], "w": np.arange(4), "names": ("one", "two"), "beta": 0.5}  # fmt: skip
    first, second = cut(batch, 2)
    assert first["x"].tolist() == [[0, 1], [2, 3]]
    assert second["y"][1][0].tolist() == [2, 3]
    assert (first["y"][0], second["y"][0]) == (3, 3)
    assert (first["ids"], second["ids"], second["spans"]) == (["a", "b"], ["c", "d"], [[], [4]])
    assert second["w"].tolist() == [2, 3]
    assert (second["names"], second["beta"]) == (("one", "two"), 0.5)
    with pytest.raises(StowageError, match="batch/x has 4 rows and batch/weights has 2, so the batch cannot be cut"):
        cut({"x": torch.ones(4, 2), "weights": torch.ones(2)}, 2)


USES: list[Callable[[Any], object]] = [
    str, repr, hash, bool, float, int, len, list, lambda v: v + 1, lambda v: 1 + v, lambda v: v == 1, lambda v: v < 1,
    lambda v: f"{v}", lambda v: {v: 1}, lambda v: v in ["a"], lambda v: v.upper(), lambda v: torch.ones(1) * v,
    lambda v: v[0], lambda v: "a" + v, lambda v: -v, range, lambda v: v and 1,
]  # fmt: skip


def works(use: Callable[[Any], object], value: Any) -> bool:
    try:
        use(value)
    except (TypeError, ValueError, AttributeError):
        return False
    return True


@pytest.mark.parametrize(
    ("use", "value"), [(use, value) for use in USES for value in ("a", 1, 0.5) if works(use, value)]
)
def test_a_poisoned_value_cannot_be_used(use: Callable[[Any], object], value: Any) -> None:
    used = Used()
    with pytest.raises(PoisonError):
        use(poisoned(value, "batch/v", used))
    assert set(used.names) == {"batch/v"}


def test_a_poisoned_value_can_be_passed_by() -> None:
    used = Used()
    value = poisoned("a", "batch/v", used)
    kept = {"v": value, "list": [value]}
    assert isinstance(value, str)
    assert not isinstance(value, Tensor)
    assert not hasattr(value, "to")
    assert kept["v"] is value
    assert not callable(value)
    assert poisoned([1, None], "batch/l", used)[1] is None
    assert not used


def swallowing(model: nn.Module, batch: Any) -> Tensor:
    try:
        scale = float(batch["v"])
    except Exception:
        scale = 1.0
    return model(batch["x"]).sum() * (scale if scale < 0 else 1.0)


STEPS: list[tuple[Callable[[nn.Module, Any], Tensor], bool]] = [
    (lambda model, b: model(b["x"]).sum(), True),
    (lambda model, b: model({k: v for k, v in b.items() if isinstance(v, Tensor)}["x"]).sum(), True),
    (lambda model, b: model(b["x"]).sum() * b["v"], False),
    (lambda model, b: model(b["x"]).sum() * (2 if b["v"] > 0.4 else 1), False),
    (lambda model, b: model(b["x"]).sum() * (2 if type(b["v"]) is float and b["v"] > 0.4 else 1), False),
    (swallowing, False),
]


@pytest.mark.parametrize(("loss", "unused"), STEPS, ids=range(len(STEPS)))
def test_a_value_is_unused_where_no_trace_of_it_is_found(loss: Any, unused: bool) -> None:
    step = TrainStep(nn.Linear(2, 2), {"x": torch.ones(3, 2), "v": 0.3}, loss=loss)
    capture(step)
    before = {name: tensor.clone() for name, tensor in step.state().items()}
    assert unused_leaves(step, ["batch/v"], {"x": torch.ones(3, 2), "v": 0.5}) == unused
    assert all(torch.equal(tensor, before[name]) for name, tensor in step.state().items())
    assert isinstance(step.materialize().batch["v"], float)
