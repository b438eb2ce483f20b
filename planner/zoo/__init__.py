"""Models of the papers and today's, as plain torch modules with a batch and an optimizer."""

from planner.zoo.catalogue import ModelInfo, models
from planner.zoo.inceptions import inception
from planner.zoo.loading import load, step_maker
from planner.zoo.nasnet_a import nasnet
from planner.zoo.perceptron import mlp
from planner.zoo.recurrent import brnn, rnn
from planner.zoo.residual import wresnet
from planner.zoo.transformer import gpt

__all__ = ["ModelInfo", "brnn", "gpt", "inception", "load", "mlp", "models", "nasnet", "rnn", "step_maker", "wresnet"]
