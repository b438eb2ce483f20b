"""Small models, each with something that captures stumble over."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class Perceptron(nn.Module):
    """Activations in place, dropout."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 24), nn.ReLU(inplace=True), nn.Dropout(dropout), nn.Linear(24, 5))

    def forward(self, x):
        return self.layers(x)


class Residual(nn.Module):
    """Batch norm, a grouped and a transposed convolution, addition in place, pooling."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.up = nn.ConvTranspose2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = F.relu(self.norm(self.stem(x)), inplace=True)
        y = self.up(self.depthwise(x))
        y += x
        return self.head(F.max_pool2d(y.relu_(), 2).mean((2, 3)))


class Recurrent(nn.Module):
    """LSTM cells unrolled by hand, views of every kind."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.cell = nn.Linear(16, 32)
        self.head = nn.Linear(8, 20)

    def forward(self, tokens):
        hidden = cell = self.embed.weight.new_zeros(tokens.shape[0], 8)
        outputs = []
        for x in self.embed(tokens).unbind(1):
            i, f, g, o = self.cell(torch.cat([x, hidden], 1)).chunk(4, 1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            hidden = o.sigmoid() * cell.tanh()
            outputs.append(hidden)
        return self.head(torch.stack(outputs, 1))


class Library(nn.Module):
    """PyTorch's own LSTM, which a CPU runs as one opaque call per layer and direction."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 8, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(16, 20)

    def forward(self, tokens):
        return self.head(self.lstm(self.embed(tokens))[0])


class Transformer(nn.Module):
    """Attention, layer norm, dropout, and an output layer tied to the embedding."""

    def __init__(self, dropout=0.1):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.position = nn.Parameter(torch.randn(6, 16) * 0.02)
        self.block = nn.TransformerEncoderLayer(16, 4, 32, dropout=dropout, activation="gelu", batch_first=True)
        self.head = nn.Linear(16, 20, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.block(self.embed(tokens) + self.position))


class Habits(nn.Module):
    """A buffer that is assigned anew, a plain attribute, partial writes, a tensor made in forward, one never used."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.idle = nn.Linear(3, 3)
        self.register_buffer("mean", torch.zeros(6))
        self.scale = torch.full((6,), 1.5)

    def forward(self, x):
        y = self.linear(x)
        self.mean = 0.9 * self.mean + 0.1 * y.detach().mean(0)
        shifted = torch.zeros_like(y)
        shifted[:, 1:] = y[:, :-1]
        shifted[:, 0] = torch.tensor(0.5)
        shifted.mul_(self.scale)
        return shifted - self.mean


class Mixtures(nn.Module):
    """In place across types, numbers drawn and never used, memory filled unread, `out=`, literals changed."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x):
        low = self.linear(x).bfloat16()
        low.add_(x)
        low.mul_(torch.tensor(0.5))
        torch.rand(3)
        mask = torch.empty_like(x).bernoulli_(0.5)
        room = torch.empty(4, 6)
        room[:, :3] = x[:, :3]
        room[:, 3:].fill_(2.0)
        doubled = torch.empty(4, 6)
        torch.mul(x, 2.0, out=doubled)
        row = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        row[0, 1:] += 1.0
        factor = torch.tensor(2.0)
        factor.mul_(row.sum())
        room = room.t().contiguous().t() * factor
        room.copy_(room.flip(0))
        return low.float() * mask * room + doubled + x.clone().masked_fill_(mask.bool(), 0.0)


def cross_entropy(model, batch):
    scores = model(batch[0])
    return F.cross_entropy(scores.flatten(0, -2), batch[1].flatten())


def mean_square(model, batch):
    return model(batch[0]).square().mean()


def vectors():
    return torch.randn(6, 12), torch.randint(5, (6,))


def images():
    return torch.randn(4, 3, 12, 12), torch.randint(5, (4,))


def tokens():
    return torch.randint(20, (4, 6)), torch.randint(20, (4, 6))


#: By name: model, batch, loss.
MODELS = {
    "perceptron": (lambda: Perceptron(0.2), vectors, cross_entropy),
    "residual": (Residual, images, cross_entropy),
    "recurrent": (Recurrent, tokens, cross_entropy),
    "library": (Library, tokens, cross_entropy),
    "transformer": (Transformer, tokens, cross_entropy),
    "mixtures": (Mixtures, lambda: (torch.randn(4, 6),), mean_square),
    "habits": (Habits, lambda: (torch.randn(4, 6),), mean_square),
}
