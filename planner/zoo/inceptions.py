"""Inception networks on images, by version and width."""

from __future__ import annotations

from planner.errors import StowageError
from planner.zoo.inception_v3 import inception_v3
from planner.zoo.inception_v4 import inception_v4
from planner.zoo.steps import Mode, Optimizer, ZooStep, classification_step, images, require_positive, title

_VERSIONS = {3: inception_v3, 4: inception_v4}


def inception(
    *, version: int = 3, widen: int = 4, image: int = 299, classes: int = 1000, batch: int = 1,
    optimizer: Optimizer = "sgd", mode: Mode = "train", seed: int = 0,
) -> ZooStep:  # fmt: skip
    """Inception network on random images; SwapAdvisor's Inception-4 is best met by the defaults.

    Args:
        version: 3 or 4.
        widen: factor on all channels; 1 is the published network.
        image: height and width of the images, in pixels.
        classes: of the classifier.
        batch: images per step.
        optimizer: `sgd`, `momentum`, `adam` or `adamw`; for training.
        mode: `train`, or `inference`: the forward pass in evaluation mode.
        seed: of weights and batch.

    Raises:
        StowageError: an argument is out of range.
    """
    if version not in _VERSIONS:
        raise StowageError(f"inception: version={version} is unknown; choose 3 or 4")
    require_positive("inception", widen=widen, classes=classes, batch=batch)
    if image < 75:
        raise StowageError(f"inception: image={image} is too small; use at least 75 pixels")
    name = title(
        inception, version=version, widen=widen, image=image, classes=classes, batch=batch,
        optimizer=optimizer, mode=mode, seed=seed,
    )  # fmt: skip
    build = _VERSIONS[version]
    return classification_step(
        name, lambda: build(widen, classes), lambda: images(batch, image, classes), optimizer, seed, mode
    )
