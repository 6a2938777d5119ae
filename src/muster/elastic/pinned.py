"""Page-locking of the agent's buffers by the worker, so that a GPU copies into them at full speed."""

import warnings
from typing import Any

import torch


def cudart() -> Any:
    return torch.cuda.cudart()  # type: ignore[no-untyped-call]


def lock_pages(data: torch.Tensor) -> bool:
    """Register host memory with CUDA; without it copies still work, slower and in step with the host."""
    code = int(cudart().cudaHostRegister(data.data_ptr(), data.numel(), 0))
    if code:
        warnings.warn(f"page-locking {data.numel()} bytes failed with CUDA error {code}", stacklevel=2)
    return code == 0


def unlock_pages(data: torch.Tensor) -> None:
    cudart().cudaHostUnregister(data.data_ptr())
