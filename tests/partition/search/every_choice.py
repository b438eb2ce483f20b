"""The least bytes of a small graph by trying every choice, worked out from what each tensor is brought from and to."""

from collections import defaultdict
from functools import cache
from itertools import product
from math import prod

from planner.graph import GraphBuilder, Kind
from planner.partition import Partial, Reduction, Replicated, Unread, coarsen, conversion_bytes, splittable_ops

UNARY = {"aten.relu.default": "$0", "aten._softmax.default": "$0, 1, False", "aten.mul.Tensor": "$0, 2.0"}
IMPOSSIBLE = float("inf")
SUM = Partial(Reduction.SUM)


def random_graph(rng, most=6, sizes=(2, 3, 5, 8, 12)):
    """Some matrix products, element-wise ops, softmaxes and sums of products, several of them of the same matrices."""
    build, tensors = GraphBuilder("random"), []

    def add(shape, kind):
        storage = build.add_storage(f"s{len(build.storages)}", 4 * prod(shape), kind)
        tensors.append((build.add_tensor(f"t{len(tensors)}", storage, shape), shape))
        return tensors[-1]

    def apply(target, inputs, made, text):
        found = add(made, Kind.ACTIVATION)
        build.add_op(f"op{len(build.ops)}", target, inputs, (found[0],), attributes=text)
        return found

    sizes = [rng.choice(sizes) for _ in range(3)]
    for _ in range(3):
        add((rng.choice(sizes), rng.choice(sizes)), rng.choice([Kind.PARAMETER, Kind.INPUT]))
    count = rng.randint(3, most)
    while len(build.ops) < count:
        left, (rows, middle) = rng.choice(tensors)
        right, shape = rng.choice(tensors)
        fits = shape[0] == middle
        if fits and rng.random() < 0.3 and len(build.ops) + 3 <= count:  # a sum of two products
            other, (_, width) = right, shape
            first = apply("aten.mm.default", (left, other), (rows, width), "$0, $1")
            second = apply("aten.mm.default", (left, other), (rows, width), "$0, $1")
            apply("aten.add.Tensor", (first[0], second[0]), (rows, width), "$0, $1")
        elif fits and rng.random() < 0.6:
            apply("aten.mm.default", (left, right), (rows, shape[1]), "$0, $1")
        elif shape == (rows, middle):
            apply("aten.add.Tensor", (left, right), shape, "$0, $1")
        else:
            target = rng.choice(list(UNARY))
            apply(target, (left,), (rows, middle), UNARY[target])
    return build.build()


def least_bytes_by_trying(graph, mesh, fixed=None):
    """The least bytes over every split of every group, or those given, and every strategy of every op, at all levels.

    Args:
        graph: small, without views or halos.
        mesh: into how many parts each level cuts.
        fixed: per group, its label at every level.
    """
    coarse, ops = coarsen(graph), splittable_ops(graph)
    levels = range(len(mesh))
    wholes = {t.id: coarse.groups[coarse.group_of[t.id]].members[t.id] for t in graph.tensors}

    def alive(sizes, chosen):
        cut = {name: prod(k for k, other in zip(mesh, chosen, strict=False) if other == name) for name in sizes}
        return [name for name, size in sizes.items() if size // cut[name] >= mesh[len(chosen)]]

    def sequences(sizes, always, otherwise):
        rows = [()]
        for _ in levels:
            rows = [(*row, x) for row in rows for x in [*(alive(sizes, row) or [otherwise]), *always]]
        return rows

    domains = []
    for group, carried in zip(coarse.groups, coarse.carried, strict=True):
        domains.append(sequences(group.sizes, ["sum"] if carried else [], None))
    small = [None in row for row in fixed] if fixed else [any(None in row[:1] for row in rows) for rows in domains]
    alike = defaultdict(list)
    for op, splittable in zip(graph.ops, ops, strict=True):
        around = tuple(tuple(wholes[tensor].items()) for tensor in (*op.inputs, *op.outputs))
        alike[splittable, tuple(coarse.group_of[t] for t in (*op.inputs, *op.outputs)), around].append(op)

    def state(tensor, label):
        if label == "sum":
            return SUM
        return next((split for split, own in wholes[tensor].items() if own == label), Replicated())

    unit = cache(conversion_bytes)

    def received(shape, have, want):
        """Bytes of bringing a tensor from states to states: level by level, for as many parts as there are."""
        total = 0
        for level in levels:
            here = unit(shape, have[level], want[level], mesh[level], 4)
            for outer in range(level):
                pair = have[outer], want[outer]
                if isinstance(pair[0], Partial) or (isinstance(pair[1], Replicated)):
                    here *= mesh[outer]
            for inner in range(level + 1, len(mesh)):
                pair = have[inner], want[inner]
                if pair[0] == pair[1] and isinstance(pair[0], Replicated | Partial):
                    here *= mesh[inner]
            total += here
        return total

    def ways(splittable, members):
        first = members[0]
        around = [coarse.group_of[t] for t in (*first.inputs, *first.outputs)]
        sums = any(coarse.carried[group] for group in around)
        found = {}
        for number, strategy in enumerate(splittable.strategies):
            linear = any(isinstance(x, Partial) for x in strategy.inputs)
            if not linear or (sums and not any(isinstance(x, Replicated) for x in strategy.inputs)):
                found[number] = strategy.workers()
        everything = all(small[coarse.group_of[t]] for t in first.outputs)
        return sequences(found, [None] if everything else [], None)

    def want(splittable, way, place, inputs):
        states = []
        for number in way:
            if number is None:
                states.append(Replicated())
            else:
                strategy = splittable.strategies[number]
                states.append(strategy.inputs[place] if inputs else splittable.output_states(strategy)[place])
        return tuple(states)

    def stages(splittable, way):
        total = 0
        for level, number in enumerate(way):
            here = 0 if number is None else splittable.stage_bytes(splittable.strategies[number], mesh[level])
            for outer in range(level):  # softmaxes of rows: what divides the rows divides their maxima and sums
                rows = way[outer] is not None and splittable.strategies[way[outer]].axis is not None
                if not rows or splittable.strategies[way[outer]].stages:
                    here *= mesh[outer]
            total += here
        return total

    numbers, states_of = {}, []

    def numbered(states):
        """A number for states, which is faster to look up than they are."""
        if states not in numbers:
            numbers[states] = len(states_of)
            states_of.append(states)
        return numbers[states]

    @cache
    def brought(tensor, labels, wanted):
        """Bytes of bringing a tensor, kept with these labels, to the states that an op reads."""
        have = tuple(state(tensor, label) for label in labels)
        if any(
            isinstance(h, Partial) and not isinstance(w, Partial) for h, w in zip(have, states_of[wanted], strict=True)
        ):
            return IMPOSSIBLE
        return received(graph.tensors[tensor].shape, have, states_of[wanted])

    @cache
    def kept(tensor, made, labels):
        """Bytes of keeping a tensor with these labels, which an op makes in other states."""
        stored = tuple(state(tensor, label) for label in labels)
        return received(graph.tensors[tensor].shape, states_of[made], stored)

    def moves(splittable, members, way):
        """Bytes of a way's own stages, the (tensor, states) that its ops read, and those that they make."""
        read, made = [], []
        for op in members:
            wanted = [(tensor, want(splittable, way, place, True)) for place, tensor in enumerate(op.inputs)]
            read += [(t, numbered(states)) for t, states in wanted if not any(isinstance(x, Unread) for x in states)]
            made += [(t, numbered(want(splittable, way, place, False))) for place, t in enumerate(op.outputs)]
        return len(members) * stages(splittable, way), read, made

    parts = [
        [moves(splittable, members, way) for way in ways(splittable, members)]
        for (splittable, *_), members in alike.items()
    ]
    best = IMPOSSIBLE

    def search(number, total, seen, values):
        """Every way of every op, with what was already brought to others; given up once it is no better."""
        nonlocal best
        if total >= best:
            return
        if number == len(parts):
            best = total
            return
        for cost, read, made in parts[number]:
            fresh = {pair for pair in read if pair not in seen}
            bring = sum(brought(tensor, values[coarse.group_of[tensor]], wanted) for tensor, wanted in fresh)
            keep = sum(kept(tensor, states, values[coarse.group_of[tensor]]) for tensor, states in made)
            search(number + 1, total + cost + bring + keep, seen | fresh, values)

    for values in product(*domains) if fixed is None else [fixed]:
        search(0, 0, set(), values)
    return best
