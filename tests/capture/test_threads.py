"""A capture goes on in the background while its user works on: neither disturbs the other."""

from threading import Barrier, Event, Semaphore, Thread

import torch
from torch import nn
from torch.nn.functional import dropout

from planner.capture import capture
from planner.graph import Graph
from planner.step import TrainStep


class Dropping(nn.Module):
    """Drops, does something else, drops again."""

    def __init__(self, between=lambda: None):
        super().__init__()
        self.first, self.second, self.between = nn.Linear(4, 4), nn.Linear(4, 4), between

    def forward(self, x):
        x = dropout(self.first(x), 0.5)
        self.between()
        return dropout(self.second(x), 0.5)


def step(between=lambda: None):
    return TrainStep(Dropping(between), torch.randn(3, 4), loss=lambda model, x: model(x).square().mean())


def places(graph):
    return [(op.target, op.module) for op in graph.ops]


def in_threads(*acts):
    results = [None] * len(acts)

    def kept(number):
        results[number] = acts[number]()

    threads = [Thread(target=kept, args=(number,)) for number in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_who_seeds_draws_and_runs_modules_meanwhile_finds_the_numbers_of_that_seed():
    begun, over = Event(), Event()
    captured = step(lambda: (begun.set(), over.wait(240)))

    def work():
        assert begun.wait(240)
        torch.manual_seed(7)
        first = nn.Sequential(nn.Linear(2, 2), nn.ReLU())(torch.randn(3, 2))
        over.set()
        return first

    graph, first = in_threads(lambda: capture(captured), work)
    after = torch.randn(3)
    assert places(graph) == places(capture(step()))
    torch.manual_seed(7)
    assert torch.equal(nn.Sequential(nn.Linear(2, 2), nn.ReLU())(torch.randn(3, 2)), first)
    assert torch.equal(torch.randn(3), after)


def test_captures_at_once_take_turns_and_one_step_is_captured_once():
    together = Barrier(4)
    runs = Semaphore(0)  # which no capture looks into
    one = step(runs.release)
    others = [step(), step()]

    def act(each):
        together.wait()
        return capture(each)

    graphs = in_threads(*(lambda each=each: act(each) for each in (one, one, *others)))
    assert all(isinstance(graph, Graph) for graph in graphs)
    assert graphs[0] is graphs[1]
    assert runs.acquire(blocking=False)
    assert not runs.acquire(blocking=False)
    assert places(graphs[2]) == places(graphs[3]) == places(graphs[0])
