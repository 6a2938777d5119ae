"""The training state of a model and its optimizer as named boxes, to be saved and filled again.

Parameters, buffers and optimizer tensors of plain, FSDP2 and tensor-parallel modules look the same here: a
name, a global shape, and the box of it that is in this process.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

import torch
from torch.distributed.tensor import DTensor, Replicate, Shard

from muster.elastic.layout import Box, Piece, owned, sharded, whole

_WRAPPERS = ("_orig_mod.", "module.")


class UnsupportedState(TypeError):
    """State that cannot be saved as named boxes, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor of the state. `copies` processes hold the same box; this one is number `index` of them."""

    name: str
    tensor: torch.Tensor  # what is in this process
    shape: tuple[int, ...]
    box: Box
    index: int
    copies: int
    changes: bool = False  # in the forward pass already, as the statistics of a BatchNorm do

    @property
    def dtype(self) -> str:
        return str(self.tensor.dtype).removeprefix("torch.")

    def piece(self, box: Box) -> Piece:
        return Piece(self.name, self.dtype, self.tensor.element_size(), self.shape, box)

    def mine(self) -> Box | None:
        """The part of the box that this process saves."""
        return owned(self.name, self.box, self.index, self.copies)

    def part(self, box: Box) -> torch.Tensor:
        """The tensor's view of a box inside its own."""
        view = self.tensor.detach()
        for dim, (offset, size) in enumerate(zip(box.offset, box.size, strict=True)):
            view = view.narrow(dim, offset - self.box.offset[dim], size)
        return view


def clean(name: str) -> str:
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    return name


def is_sharded(tensor: Any) -> TypeGuard[DTensor]:
    return isinstance(tensor, DTensor)


def entry(name: str, tensor: torch.Tensor, rank: int, world: int) -> Entry:
    if not is_sharded(tensor):
        changes = name.startswith("model.") and not isinstance(tensor, torch.nn.Parameter)
        return Entry(name, tensor, tuple(tensor.shape), whole(tensor.shape), rank, world, changes)
    coordinate = tensor.device_mesh.get_coordinate()
    if coordinate is None:
        raise UnsupportedState(f"{name} lies on a mesh this process is not part of")
    cuts: list[tuple[int, int, int]] = []
    later: list[tuple[int, int, int]] = []
    index, copies = 0, 1
    for placement, size, at in zip(tensor.placements, tensor.device_mesh.shape, coordinate, strict=True):
        if isinstance(placement, Replicate):
            index, copies = index * size + at, copies * size
        elif not placement.is_shard() and not hasattr(placement, "split_factor"):
            raise UnsupportedState(f"{name} is placed as {placement}: only sharded and replicated are saved")
        else:
            (cuts if type(placement) is Shard else later).append((placement.dim, size, at))  # type: ignore[attr-defined]
    # A strided shard was cut before the ones to its right were: FSDP2 over tensor parallelism.
    box = sharded(tensor.shape, cuts + later)
    local = tensor.to_local()
    if tuple(local.shape) != box.size and local.numel() != 0:
        raise UnsupportedState(f"{name}: holds {tuple(local.shape)}, its placement means {box.size}")
    return Entry(name, local, tuple(tensor.shape), box, index, copies)


def parameters(model: torch.nn.Module) -> dict[int, str]:
    return {id(p): clean(n) for n, p in model.named_parameters()}


def tensors(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, torch.Tensor]]:
    for name, parameter in model.named_parameters():
        yield f"model.{clean(name)}", parameter
    kept = set(model.state_dict().keys())
    for name, buffer in model.named_buffers():
        if name in kept:
            yield f"model.{clean(name)}", buffer
    names = parameters(model)
    for owner, state in optimizer.state.items():
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                yield f"optim.{_named(names, owner)}.{key}", value


def _named(names: dict[int, str], parameter: torch.Tensor) -> str:
    if id(parameter) not in names:
        raise UnsupportedState(
            "the optimizer holds a parameter that is not the model's: build it from model.parameters()"
        )
    return names[id(parameter)]


def entries(model: torch.nn.Module, optimizer: torch.optim.Optimizer, rank: int, world: int) -> list[Entry]:
    return [entry(name, tensor, rank, world) for name, tensor in tensors(model, optimizer)]


def replicated(model: torch.nn.Module) -> bool:
    """Whether every process holds all of the model."""
    return not any(is_sharded(p) for p in model.parameters())


@dataclass(frozen=True, slots=True)
class Part:
    """What this process saves of one tensor: the piece, and the view to copy it from."""

    piece: Piece
    view: torch.Tensor
    changes: bool


def saved_parts(found: list[Entry]) -> list[Part]:
    parts = []
    for one in found:
        box = one.mine()
        if box is not None and one.box.count:
            parts.append(Part(one.piece(box), one.part(box), one.changes))
    return parts


def scalars(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The part of the optimizer that is not tensors: hyper-parameters and counters."""
    names = parameters(model)
    groups = [{k: coded(v, k) for k, v in g.items() if k != "params"} for g in optimizer.param_groups]
    state = {
        _named(names, p): {k: coded(v, k) for k, v in s.items() if not isinstance(v, torch.Tensor)}
        for p, s in optimizer.state.items()
    }
    return {"groups": groups, "state": {k: v for k, v in state.items() if v}}


def coded(value: Any, name: str) -> Any:
    """A value as JSON; tuples and small tensors are marked, anything else is refused by name."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return {"(tuple)": [coded(v, name) for v in value]}
    if isinstance(value, list):
        return [coded(v, name) for v in value]
    if isinstance(value, torch.Tensor) and value.numel() <= 4096:
        return {"(tensor)": value.tolist(), "dtype": str(value.dtype).removeprefix("torch.")}
    if isinstance(value, dict):
        return {"(dict)": [[coded(k, name), coded(v, name)] for k, v in value.items()]}
    raise UnsupportedState(f"{name} is a {type(value).__name__}, which has no form to be saved in")


def decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [decoded(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "(tuple)" in value:
        return tuple(decoded(v) for v in value["(tuple)"])
    if "(tensor)" in value:
        return torch.tensor(value["(tensor)"], dtype=getattr(torch, value["dtype"]))
    return {decoded(k): decoded(v) for k, v in value["(dict)"]}


def prepare(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, shapes: dict[str, tuple[str, tuple[int, ...]]],
    extra: dict[str, Any],
) -> None:  # fmt: skip
    """Give the optimizer the state tensors a snapshot has, and its numbers, so that they can be filled."""
    for group, saved in zip(optimizer.param_groups, extra["groups"], strict=True):
        group.update({k: decoded(v) for k, v in saved.items()})
    by_name = {clean(n): p for n, p in model.named_parameters()}
    on_device = {
        id(p): bool(g.get("capturable") or g.get("fused")) for g in optimizer.param_groups for p in g["params"]
    }
    optimizer.state.clear()
    for full, (dtype, shape) in shapes.items():
        if not full.startswith("optim."):
            continue
        name, _, key = full.removeprefix("optim.").rpartition(".")
        if name not in by_name:
            raise UnsupportedState(f"the snapshot has state for {name}, which the model does not: restore with it")
        parameter = by_name[name]
        optimizer.state[parameter][key] = _blank(parameter, getattr(torch, dtype), shape, on_device[id(parameter)])
    for name, values in extra["state"].items():
        optimizer.state[by_name[name]].update({k: decoded(v) for k, v in values.items()})


def _blank(parameter: torch.Tensor, dtype: torch.dtype, shape: tuple[int, ...], on_device: bool) -> torch.Tensor:
    if tuple(parameter.shape) == shape and shape:
        return torch.zeros_like(parameter, dtype=dtype)
    return torch.zeros(shape, dtype=dtype, device=parameter.device if on_device else "cpu")
