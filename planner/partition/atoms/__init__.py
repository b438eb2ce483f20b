"""Views as renamings of atoms: no op of a graph is a view, and a split of a view is a split of what it views."""

from planner.partition.atoms.atoms import Atoms, atoms
from planner.partition.atoms.factors import Factor, ViewedTensor, viewed_tensors

__all__ = ["Atoms", "Factor", "ViewedTensor", "atoms", "viewed_tensors"]
