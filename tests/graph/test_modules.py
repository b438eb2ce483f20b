"""The module tree: every op and every storage has one place in it, and isomorphic modules are recognised."""

import pytest

from planner import zoo
from planner.capture import capture
from planner.graph import Graph, GraphBuilder, Kind, module_tree, storage_modules


@pytest.fixture(scope="module")
def resnet() -> Graph:
    return capture(zoo.load("wresnet:depth=50,batch=2,image=32"))


def test_every_op_and_storage_is_in_exactly_one_module(resnet: Graph) -> None:
    root = module_tree(resnet)
    modules = list(root.walk())
    assert sorted(op for module in modules for op in module.ops) == list(range(len(resnet.ops)))
    assert sorted(storage for module in modules for storage in module.storages) == list(range(len(resnet.storages)))
    assert root.all_ops == tuple(range(len(resnet.ops)))
    for module in modules:
        assert all(resnet.ops[op].module == module.path for op in module.ops)
        assert module.kind == resnet.modules.get(module.path, "")


def test_a_child_lies_in_its_parent_and_children_come_as_they_run(resnet: Graph) -> None:
    for module in module_tree(resnet).walk():
        for child in module.children:
            assert child.path.rpartition(".") == (module.path, "." if module.path else "", child.name)
        firsts = [child.all_ops[0] for child in module.children]
        assert firsts == sorted(firsts)


def test_parameters_and_buffers_belong_where_they_are_registered(resnet: Graph) -> None:
    owner = storage_modules(resnet)
    for storage in resnet.storages:
        if storage.kind in (Kind.PARAMETER, Kind.BUFFER):
            assert owner[storage.id] == storage.name.rpartition(".")[0]
        if storage.kind is Kind.INPUT:
            assert owner[storage.id] == ""


def test_gradients_and_optimizer_states_belong_to_their_parameters_module() -> None:
    graph = capture(zoo.load("mlp:optimizer=adam"))
    owner = storage_modules(graph)
    states = [storage for storage in graph.storages if storage.kind is Kind.OPTIMIZER_STATE]
    assert len(states) == 3 * sum(storage.kind is Kind.PARAMETER for storage in graph.storages)
    for storage in states:
        assert owner[storage.id] == storage.name.partition("/")[0].rpartition(".")[0]
    for storage in graph.storages:
        if storage.kind is Kind.GRADIENT:
            assert owner[storage.id]


def test_blocks_are_isomorphic_where_class_parameters_and_ops_are(resnet: Graph) -> None:
    stages = next(module for module in module_tree(resnet).walk() if module.path == "stages")
    for stage in stages.children:
        first, *rest = stage.children
        assert len({block.isomorphic_group for block in rest}) == 1
        assert first.isomorphic_group != rest[0].isomorphic_group  # it has a downsampling branch, or other widths
    assert len({stage.children[1].isomorphic_group for stage in stages.children}) == len(stages.children)


def one_op_each(*modules: tuple[str, str, int]) -> list[int]:
    """The `isomorphic_group` of modules with (class, op, parameter bytes)."""
    build = GraphBuilder("modules")
    last = build.add_tensor("x", build.add_storage("x", 4, Kind.INPUT), (1,))
    for number, (kind, target, size) in enumerate(modules):
        build.modules[str(number)] = kind
        weight = build.add_tensor("w", build.add_storage("w", size, Kind.PARAMETER), (size // 4,))
        out = build.add_tensor("y", build.add_storage("y", 4, Kind.ACTIVATION), (1,))
        build.add_op(str(number), target, [last, weight], [out], module=str(number))
        last = out
    return [module.isomorphic_group for module in module_tree(build.build()).children]


def test_another_class_op_or_parameter_size_is_not_alike() -> None:
    same = ("Linear", "aten.mm.default", 8)
    a, b, *others = one_op_each(
        same, same, ("Conv", "aten.mm.default", 8), ("Linear", "aten.add.Tensor", 8), ("Linear", "aten.mm.default", 12)
    )
    assert a == b
    assert len({a, *others}) == 4


def test_a_graph_without_modules_is_one_root() -> None:
    build = GraphBuilder("bare")
    build.add_op("f", "aten.f.default", [], [build.add_tensor("y", build.add_storage("y", 4, Kind.ACTIVATION), (1,))])
    root = module_tree(build.build())
    assert (root.path, root.kind, root.children, root.ops, root.storages) == ("", "", (), (0,), (0,))
