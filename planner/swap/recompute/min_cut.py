"""The minimum cut of a network, by Dinic's algorithm (Dinitz 1970): blocking flows along shortest paths.

Networks here have a node for each storage and each group of ops of a forward pass, and some thousand arcs, which takes
a millisecond or two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from planner.jit import kernel
from planner.swap.problem.problem import Bytes, Flags, Ints

#: The capacity of an arc that is never cut.
UNCUT = np.int64(1 << 60)
SOURCE, SINK = 0, 1


class FlowNetwork(NamedTuple):
    """A network; node 0 is the source, node 1 the sink.

    The arcs of node `v` are `first[v]` to `first[v + 1]`, each with the node it leads to in `head` and the arc that
    leads back in `back`. `arc[k]` is where the `k`-th arc that was asked for stands.
    """

    first: Ints
    head: Ints
    back: Ints
    arc: Ints


def flow_network(nodes: int, arcs: Sequence[tuple[int, int]]) -> FlowNetwork:
    """Lay out a network.

    Args:
        nodes: how many, source and sink among them.
        arcs: from which node to which.
    """
    ends = np.array(arcs, np.int32).reshape(-1, 2)
    tails = np.concatenate([ends[:, 0], ends[:, 1]])
    heads = np.concatenate([ends[:, 1], ends[:, 0]])
    order = np.argsort(tails, kind="stable")
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    count = len(ends)
    partner = np.concatenate([np.arange(count, 2 * count), np.arange(count)])
    first = np.zeros(nodes + 1, np.int32)
    np.cumsum(np.bincount(tails, minlength=nodes), out=first[1:])
    return FlowNetwork(first, heads[order].astype(np.int32), place[partner[order]], place[:count])


@kernel
def min_cut(network: FlowNetwork, capacity: Bytes) -> Flags:
    """`[nodes]`, which nodes are on the source's side of a minimum cut; of all such cuts, of the smallest side.

    Args:
        network: the network.
        capacity: `[arcs]`, in the order of `network.head`; changed into what is left of each.
    """
    first, head, back = network.first, network.head, network.back
    nodes = first.shape[0] - 1
    level, cursor = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    queue, path = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    while True:
        level[:] = -1
        level[SOURCE] = 0
        queue[0], begin, end = SOURCE, 0, 1
        while begin < end and level[SINK] < 0:
            node = queue[begin]
            begin += 1
            for a in range(first[node], first[node + 1]):
                if capacity[a] > 0 and level[head[a]] < 0:
                    level[head[a]] = level[node] + 1
                    queue[end] = head[a]
                    end += 1
        if level[SINK] < 0:
            return level >= 0
        cursor[:] = first[:-1]
        node, depth = SOURCE, 0
        while True:
            if node == SINK:
                least = capacity[path[0]]
                for k in range(1, depth):
                    least = min(least, capacity[path[k]])
                restart = 0
                for k in range(depth - 1, -1, -1):
                    capacity[path[k]] -= least
                    capacity[back[path[k]]] += least
                    if capacity[path[k]] == 0:
                        restart = k
                depth = restart
                node = head[back[path[depth]]]
                continue
            advanced = False
            while cursor[node] < first[node + 1]:
                a = cursor[node]
                if capacity[a] > 0 and level[head[a]] == level[node] + 1:
                    path[depth], node = a, head[a]
                    depth += 1
                    advanced = True
                    break
                cursor[node] += 1
            if not advanced:
                if depth == 0:
                    break
                depth -= 1
                node = head[back[path[depth]]]
                cursor[node] += 1
