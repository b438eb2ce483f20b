"""Steps in double precision, so that what is left of differences is rounding."""

import pytest
import torch

from planner import SGD
from planner.capture import capture
from planner.partition import coarsen
from planner.step import TrainStep
from planner.zoo import load

MLP = "mlp:layers=1,hidden=5,classes=7,batch=40"
ADAM = "mlp:layers=2,hidden=10,classes=6,batch=7,optimizer=adam"
GPT = "gpt:layers=1,hidden=12,heads=4,sequence=6,vocabulary=20,batch=6"
RNN = "rnn:layers=1,hidden=6,steps=3,batch=6,classes=4"
CONV = "convolutions"
POOL = "a pool that makes more columns"


class _Convolutions(torch.nn.Module):
    """Stride, padding, dilation, groups, one place, batch normalisation, two branches and all poolings."""

    def __init__(self):
        super().__init__()
        nn = torch.nn
        self.wide = nn.Conv2d(4, 6, 3, stride=2, padding=3, dilation=2)
        self.norm = nn.BatchNorm2d(6)
        self.grouped, self.point = nn.Conv2d(6, 8, 3, padding=1, groups=2, bias=False), nn.Conv2d(6, 4, 1)
        self.largest, self.mean, self.last = nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2), nn.Linear(12, 4)

    def forward(self, x):
        x = torch.relu(self.norm(self.wide(x)))
        x = self.mean(self.largest(torch.cat([self.grouped(x), self.point(x)], 1)))
        return self.last(torch.nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


class _WideningPool(torch.nn.Module):
    """A pool that makes more columns than its image has."""

    def __init__(self):
        super().__init__()
        self.first, self.pool, self.last = torch.nn.Conv2d(4, 2, 1), torch.nn.MaxPool2d(2, 1, 1), torch.nn.Linear(2, 4)

    def forward(self, x):
        return self.last(self.pool(self.first(x)).square().sum((2, 3)))


def _images(network):
    def model():
        torch.manual_seed(0)
        return network()

    batch = {"x": torch.randn(6, 4, 13, 11), "y": torch.randint(0, 4, (6,))}
    loss = torch.nn.functional.cross_entropy
    return TrainStep(model, batch, loss=lambda m, b: loss(m(b["x"]), b["y"]), optimizer=SGD(lr=0.1))


@pytest.fixture(scope="module", autouse=True)
def doubles():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


class _CoarseGraphs(dict):
    """By name, made when they are first asked for."""

    def __missing__(self, name):
        networks = {CONV: _Convolutions, POOL: _WideningPool}
        step = _images(networks[name]) if name in networks else load(name)
        self[name] = coarsen(capture(step, progress=False))
        return self[name]


@pytest.fixture(scope="module")
def coarse_graphs(doubles):
    return _CoarseGraphs()
