"""One thread per test process: several that each want all cores spend their time waiting for each other."""

import gc
import os
import shlex
import signal

import pytest
from hypothesis import settings

from tests import preloaded
from tests.effort import EFFORT

os.environ.setdefault("OMP_NUM_THREADS", "1")

# The modules of PyTorch are a third of a million objects, which every search for cycles among old objects visits: at
# Python's own thresholds a tenth of all time, and a quarter with transformers. What is collected later takes 100 MB.
gc.set_threshold(10_000, 10, 10)

# a shell lets what it begins in the background ignore Ctrl-C, for which some tests would wait without end
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# random cases of tests that do not say how many: half of what Hypothesis tries by itself, twice that in `make test-all`
settings.register_profile("stowage", max_examples=50 * EFFORT, deadline=None)  # a busy computer stops for 0.3 s
settings.load_profile("stowage")


def pytest_configure(config: pytest.Config) -> None:
    preloaded.begin()
    if config.getoption("tx", None):  # with pytest-xdist: what each worker would import takes longer than most tests
        config.option.tx = ["popen//python=" + shlex.join(preloaded.command())] * len(config.option.tx)


def pytest_unconfigure() -> None:
    preloaded.end()
