"""How composite operators are made of others in a capture: as eager PyTorch makes them on the device of the step."""

from planner.capture.composites.composites import as_on_device

__all__ = ["as_on_device"]
