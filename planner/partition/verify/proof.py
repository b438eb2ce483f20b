"""Proof by execution that a description is what its kernel computes, and that every strategy derived from it is right.

Six things are shown for a call, in this order; the first that fails is reported:

- *formula*: the formula's values are the kernel's;
- *states*: what a strategy says of each input agrees with the regions that its workers need;
- *shards*: every worker evaluates the formula on its chunk, with NaN in place of all that it does not have; stages are
  combined where the strategy says so, and the combined outputs are the kernel's;
- *region*: the kernel's own chunk does not change when everything outside of the claimed region is replaced;
- *faces*: it does change when the first or last layer of the region is;
- *cut*: for an opaque op, the kernel on cut inputs gives the chunk.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.errors import StowageError
from planner.partition.ops import Describer
from planner.partition.strategy import Strategy, strategies
from planner.partition.verify.formulas import check_formula, check_shards, check_states
from planner.partition.verify.kernel_call import KernelCall
from planner.partition.verify.kernel_regions import (
    check_cut,
    check_everything_is_read,
    check_linear,
    check_regions,
)
from planner.partition.verify.trial import Alteration, Fault, Proof, RegionAlteration, Trial


def prove(
    call: KernelCall,
    workers: Sequence[int] = (2, 3),
    describer: Describer | None = None,
    alter: Alteration | None = None,
    alter_regions: RegionAlteration | None = None,
) -> Proof:
    """Check the description of a call and every strategy against the real kernel.

    Args:
        call: the call, with small tensors.
        workers: the numbers of workers to split it over.
        describer: the description to check in place of the registered one.
        alter, alter_regions: changes to what is derived from it, to show that errors are found.

    Raises:
        StowageError: a number of workers is less than 2.
    """
    if not isinstance(workers, Sequence) or any(not isinstance(count, int) or count < 2 for count in workers):
        raise StowageError(f"workers must be numbers of 2 or more, such as (2, 3), got {workers!r}")
    proof = Proof()
    try:
        description = call.describe(describer)
    except StowageError as error:
        proof.faults.append(Fault("description", str(call), "", str(error)))
        return proof
    trial = Trial(call, description, proof, alter_regions)
    try:
        check_formula(trial)
        check_everything_is_read(trial)
        for strategy in strategies(description):
            altered = alter(strategy) if alter else strategy
            if altered is not None:
                _check_strategy(trial, altered, workers)
    except StowageError as error:
        trial.fail("description", str(error))
    return proof


def _check_strategy(trial: Trial, strategy: Strategy, workers: Sequence[int]) -> None:
    for count in workers:
        if count > strategy.workers() or trial.proof.faults:
            continue
        trial.strategy = f"{strategy.name} over {count}"
        if strategy.axis is None:
            check_linear(trial, strategy, count)
            continue
        check_states(trial, strategy, count)
        check_shards(trial, strategy, count)
        if not strategy.stages:
            check_regions(trial, strategy, strategy.axis, count)
        if trial.description.opaque:
            check_cut(trial, strategy, count)
    trial.proof.strategies += 1
