"""What a loop that was refused half way did not take back itself."""

from collections.abc import Iterator

import pytest
from torch.nn.modules import module


@pytest.fixture(autouse=True)
def no_global_hooks() -> Iterator[None]:
    yield
    for name in ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks"):
        getattr(module, name).clear()
