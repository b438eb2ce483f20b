"""Ops whose scratch memory, which they allocate themselves, depends on values."""

from __future__ import annotations

from collections.abc import Mapping

from planner.profile.synthetic_inputs import Filling

#: Ops whose scratch memory depends on values, and values that maximise it: the powers of a matrix depend on its norm,
#: the size of a sort on the number of distinct values. Integers that are indices are left as they are.
SIZED_BY_VALUES: Mapping[str, tuple[Filling, ...]] = {
    "linalg_matrix_exp": tuple(Filling(number, 0) for number in (1e-3, 0.05, 0.5, 3.0, 100.0)),
    "isin": (Filling(0.5, None),),
    "_embedding_bag_backward": (),
    "_embedding_bag_dense_backward": (),
}
