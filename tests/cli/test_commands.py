"""Every command prints, with --json, one object with the promised fields."""

from pathlib import Path

MODEL = "mlp:layers=2,hidden=32,batch=4"


def test_help_needs_no_model(planner) -> None:
    for words in ([], ["--help"], ["swap", "--help"], ["run", "--help"]):
        answer = planner(*words)
        assert answer.status == 0
        assert "Example" in answer.out


def test_models_lists_arguments_with_defaults(planner) -> None:
    models = {model["name"]: model["arguments"] for model in planner("models", "--json").json["models"]}
    assert set(models) == {"mlp", "wresnet", "rnn", "brnn", "inception", "nasnet", "gpt"}
    assert all({"batch", "optimizer"} <= set(arguments) for arguments in models.values())


def test_machines_lists_presets_and_what_is_attached(planner) -> None:
    machines = {machine["name"]: machine for machine in planner("machines", "--json").json["machines"]}
    assert {"v100-16gb", "k80x8", "a100-80gb", "h100", "h200", "laptop", "cpu"} <= set(machines)
    assert machines["v100-16gb"]["link_bytes_per_second"] == 12e9
    assert machines["v100-16gb"]["link_duplex_bytes_per_second"] == 20e9


def test_no_line_of_a_table_ends_in_blanks(planner) -> None:
    for words in (["machines"], ["models"], ["capture", MODEL]):
        lines = planner(*words).out.splitlines()
        assert lines == [line.rstrip() for line in lines]


def test_capture_counts(planner) -> None:
    facts = planner("capture", MODEL, "--json").json
    assert set(facts) == {
        "ops", "tensors", "storages", "parameter_bytes", "peak_bytes", "capture_seconds", "peak_lines",
        "peak_tensors",
    }  # fmt: skip
    lines = facts["peak_lines"]
    assert facts["parameter_bytes"] < sum(lines.values()) <= facts["peak_bytes"]
    assert list(lines.values()) == sorted(lines.values(), reverse=True)
    tensors = [tensor["bytes"] for tensor in facts["peak_tensors"]]
    assert sum(tensors) == sum(lines.values())
    assert tensors == sorted(tensors, reverse=True)
    table = planner("capture", MODEL).out
    assert f"{next(iter(lines))} " in table
    assert f"{facts['peak_tensors'][0]['name']} " in table
    assert 0 < facts["parameter_bytes"] < facts["peak_bytes"]


def test_a_graph_captured_for_a_gpu_that_is_not_there_is_called_approximate(planner) -> None:
    caution = planner("capture", MODEL, "--device", "cuda", "--json").json["approximate"]
    assert caution.startswith("the step was captured without a GPU: ")
    assert caution in " ".join(planner("capture", MODEL, "--device", "cuda").out.split())


def test_partition_lists_what_is_covered(planner) -> None:
    facts = planner("partition", MODEL, "--coverage", "--json").json
    assert set(facts) == {
        "ops", "described_ops_percent", "opaque_ops_percent", "whole_ops_percent", "described_bytes_percent",
        "opaque_bytes_percent", "whole_bytes_percent", "operators",
    }  # fmt: skip
    assert facts["described_ops_percent"] == 100
    product = next(entry for entry in facts["operators"] if entry["target"] == "aten.mm.default")
    assert product["kind"] == "described"
    assert {"i", "j", "k"} <= set(product["axes"])
    assert "aten.mm.default" in planner("partition", MODEL, "--coverage").out


def test_swap_then_run_its_plan(planner, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    words = ["--machine", "laptop", "--budget", "60%", "--seconds", 5, "--seed", 0, "--out", plan, "--json"]
    swapped = planner("swap", MODEL, *words).json
    assert set(swapped) >= {
        "budget_bytes", "peak_bytes", "host_bytes", "ideal_seconds", "step_seconds", "bound_seconds",
        "order_bound_seconds", "percent_of_ideal", "gap_to_bound_percent", "bytes_in", "bytes_out", "evaluations",
        "search_seconds", "baselines", "valid",
    }  # fmt: skip
    assert swapped["valid"] is True
    assert swapped["peak_bytes"] <= swapped["budget_bytes"]
    assert swapped["ideal_seconds"] <= swapped["bound_seconds"] <= swapped["order_bound_seconds"]
    assert swapped["order_bound_seconds"] <= swapped["step_seconds"]
    assert all(swapped["step_seconds"] <= other for other in swapped["baselines"].values() if other is not None)
    ran = planner("run", MODEL, "--plan", plan, "--steps", 2, "--check", "--json").json
    assert ran["mismatches"] == 0
    assert ran["compared"] > 0
    assert ran["peak_bytes"] <= ran["budget_bytes"] == swapped["budget_bytes"]
    assert len(ran["step_seconds"]) == 2


def test_the_same_words_give_the_same_plan(planner, tmp_path: Path) -> None:
    plans = []
    for name in ("a.json", "b.json"):
        planner("swap", MODEL, "--machine", "laptop", "--budget", "60%", "--out", tmp_path / name)
        plans.append((tmp_path / name).read_text())
    assert plans[0] == plans[1]


def test_pack_writes_offsets(planner, tmp_path: Path) -> None:
    (tmp_path / "buffers.csv").write_text("id,lower,upper,size\na,0,2,4\nb,1,3,4\nc,2,4,4\n")
    answer = planner("pack", tmp_path / "buffers.csv", "--capacity", 8, "--out", tmp_path / "out.csv", "--json")
    assert answer.json.items() >= {"buffers": 3, "max_live": 8, "height": 8, "optimal": True}.items()
    header, *rows = (tmp_path / "out.csv").read_text().split()
    assert header == "id,lower,upper,size,offset"
    assert len(rows) == 3


def test_pack_searches_for_some_seconds(planner, tmp_path: Path) -> None:
    (tmp_path / "buffers.csv").write_text("id,lower,upper,size\na,0,2,4\nb,1,3,4\nc,2,4,4\n")
    answer = planner("pack", tmp_path / "buffers.csv", "--seconds", 1, "--json")
    assert answer.json.items() >= {"height": 8, "optimal": True}.items()


def test_pack_names_the_buffers_that_do_not_fit(planner, tmp_path: Path) -> None:
    (tmp_path / "buffers.csv").write_text("id,lower,upper,size\na,0,2,4\nb,1,3,4\nc,2,4,1\n")
    answer = planner("pack", tmp_path / "buffers.csv", "--capacity", 7)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == (
        "error: no packing fits into 7 bytes: it is proven that the buffers need 8 at least, and these 2 alone do not "
        "fit (they do without any one of them): a, b; raise --capacity to 8, which is enough\n"
    )


def test_pack_refuses_a_capacity_below_the_largest_buffer(planner, tmp_path: Path) -> None:
    (tmp_path / "buffers.csv").write_text("id,lower,upper,size\n\na,0,2,4\nb,1,3,9\nc,2,4,4\n")
    answer = planner("pack", tmp_path / "buffers.csv", "--capacity", 7)
    assert answer.status == 2
    assert "line 4 of" in answer.err
    assert "has size 9, more than --capacity 7; raise --capacity to that at least" in answer.err
    assert answer.err.count("\n") == 1


def test_a_person_reads_units(planner) -> None:
    answer = planner("run", MODEL, "--budget", "100%", "--steps", 1)
    assert "KiB" in answer.out
    assert " s" in answer.out
