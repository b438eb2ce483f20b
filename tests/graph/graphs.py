"""Random graphs that are sound, for properties."""

from hypothesis import strategies as st

from planner.graph import GraphBuilder, Kind, Phase

HELD = [Kind.PARAMETER, Kind.BUFFER, Kind.OPTIMIZER_STATE, Kind.INPUT]


@st.composite
def graphs(draw, ops=12):
    """A graph whose ops read what is there and create or update storages; some have workspaces and views."""
    build = GraphBuilder(draw(st.text(max_size=8)), modules={"": "Root", "a": "Linear"})
    alive = []
    for place in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(HELD))
        size = draw(st.integers(0, 64))
        alive.append(build.add_tensor(f"held {place}", build.add_storage(f"held {place}", size, kind), [size]))
    workspaces = {}
    for place in range(draw(st.integers(1, ops))):
        inputs = draw(st.lists(st.sampled_from(alive), max_size=3))
        if draw(st.booleans()) and place:
            base = draw(st.sampled_from(alive))
            storage = build.tensors[base].storage
            target = build.add_tensor(
                f"new {place}", storage, [1], base=base, view="aten.select.int", attributes="$0, 0, 0"
            )
        else:
            storage = build.add_storage(
                f"s{place}", draw(st.integers(0, 64)), draw(st.sampled_from([Kind.ACTIVATION, Kind.GRADIENT]))
            )
            target = build.add_tensor(f"t{place}", storage, [draw(st.integers(0, 9)), 2], dtype="float64")
        random = draw(st.booleans())
        drawn = [op.id for op in build.ops if op.random and op.draws_as < 0] if random else []
        op = build.add_op(
            f"op {place}", "aten.add.Tensor", inputs, [target], attributes="$0, alpha=1", source="model.py:3",
            module=draw(st.sampled_from(["", "a"])), phase=draw(st.sampled_from(list(Phase))), flops=place,
            moved=7 * place, random=random, overwrites=inputs[:1],
            draws_as=draw(st.sampled_from([-1, *drawn])),
        )  # fmt: skip
        alive.append(target)
        workspaces[op] = draw(st.integers(0, 9))
    outputs = draw(st.lists(st.sampled_from(alive), min_size=1, max_size=2))
    return build.build(outputs).with_workspaces(workspaces)
