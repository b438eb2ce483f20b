"""The dataflow graph of a training or inference step."""

from planner.graph.arrays import Csr, GraphArrays, IntArray, arrays, csr, inverted
from planner.graph.builder import GraphBuilder
from planner.graph.check import check
from planner.graph.modules import Module, module_tree, storage_modules
from planner.graph.storage_source_lines import storage_lines
from planner.graph.store import fingerprint, from_json, load, save, structure, to_json
from planner.graph.types import PERSISTENT, Graph, Kind, Op, Phase, Storage, Tensor

__all__ = [
    "PERSISTENT", "Csr", "Graph", "GraphArrays", "GraphBuilder", "IntArray", "Kind", "Module", "Op", "Phase", "Storage",
    "Tensor", "arrays", "check", "csr", "fingerprint", "from_json", "inverted", "load", "module_tree", "save",
    "storage_lines", "storage_modules", "structure", "to_json",
]  # fmt: skip
