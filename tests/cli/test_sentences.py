"""What a command says beside its result, and whether two numbers in one sentence can be followed."""

MODEL = "mlp:layers=2,hidden=32,batch=4"


def test_a_bare_number_is_told_from_a_share(planner) -> None:
    answer = planner("swap", MODEL, "--machine", "laptop", "--budget", "40")
    assert answer.status == 2
    assert 'write "40%"' in answer.err


def test_a_budget_just_too_small_and_the_least_one_differ_in_writing(planner) -> None:
    words = ["swap", MODEL, "--machine", "laptop", "--json", "--budget"]
    least = int(planner(*words, "1KiB").err.split("at least ")[1].split()[0])
    assert planner(*words, least).json["budget_bytes"] == least
    refused = planner(*words, least - 1).err
    assert refused.split("a budget of ")[1].split(" is")[0] != refused.split("(")[-1].split(")")[0]
