"""A GPU for fake tensors where there is none: enough of CUDA for autograd and autocast to take them for real ones.

PyTorch's engine asks a table of devices how many there are, and CUDA's hooks whether a GPU is in use. In a process of
its own, which this changes for good, both are told to say that there is one. No kernel ever runs.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

_LIBRARIES = Path(torch.__file__).parent / "lib"
_DEVICES, _CUDA, _META = 21, 1, 17  # entries of the table of devices, by `c10::DeviceType`
_HOOKS, _IS_BUILT, _HAS_CONTEXT = 90, 4, 6  # entries of a table of virtual methods, from two before the first
_kept: list[Any] = []


def imitate_gpu() -> None:
    """Let this process make fake tensors of a GPU, forward and backward."""
    table = "_ZN3c104impl26device_guard_impl_registryE"
    registry = (ctypes.c_void_p * _DEVICES).in_dll(ctypes.CDLL(str(_LIBRARIES / "libc10.so")), table)
    if not registry[_CUDA]:
        registry[_CUDA] = registry[_META]
    torch._C._ensureCUDADeviceGuardSet()
    hooks_of = ctypes.CDLL(str(_LIBRARIES / "libtorch_cpu.so"))["_ZN2at6detail12getCUDAHooksEv"]
    hooks_of.restype = ctypes.c_void_p
    hooks = ctypes.cast(hooks_of(), ctypes.POINTER(ctypes.c_void_p))
    methods = (ctypes.c_void_p * _HOOKS)(*(ctypes.c_void_p * _HOOKS).from_address(hooks[0] - 16))
    yes = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(lambda _: True)
    no = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_int8)(lambda _, __: False)
    methods[_IS_BUILT] = ctypes.cast(yes, ctypes.c_void_p).value
    methods[_HAS_CONTEXT] = ctypes.cast(no, ctypes.c_void_p).value
    hooks[0] = ctypes.addressof(methods) + 16
    _kept.extend((methods, yes, no))
    cuda: Any = torch.cuda
    cuda.is_available = lambda: True
    cuda.is_bf16_supported = lambda *_, **__: True
    FakeTensorMode.avoid_device_init = property(lambda _: True)  # constants are made on the host, and moved by an op
