"""Gradients over all members, weighted by how many samples each one had.

A plain module's gradients are reduced here, in buckets whose layout is fixed by the parameters' order alone,
so that a recovered run adds up in the very same order. DDP and FSDP2 modules reduce by themselves; they are
only told the weights.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import GradBucket
from torch.distributed.fsdp import FSDPModule
from torch.nn.parallel import DistributedDataParallel

from muster.elastic.layout import even
from muster.elastic.state import replicated
from muster.elastic.tree import Summing, combined, nodes

BUCKET = 25 << 20


@dataclass(slots=True)
class Weight:
    """This member's share of the samples of the step."""

    value: float = 1.0


@dataclass(slots=True)
class Bucket:
    parameters: list[torch.nn.Parameter]
    missing: int = 0
    flat: torch.Tensor | None = None
    work: Any = None


@dataclass(slots=True)
class Buckets:
    """Reduces while the backward pass still runs: a bucket travels once its last gradient is there."""

    weight: Weight
    buckets: list[Bucket]
    order: dict[int, int] = field(default_factory=dict)
    ready: set[int] = field(default_factory=set)
    launched: int = 0
    armed: bool = False
    hooks: list[Any] = field(default_factory=list)

    def begin(self) -> None:
        for bucket in self.buckets:
            bucket.missing, bucket.flat, bucket.work = len(bucket.parameters), None, None
        self.ready.clear()
        self.launched, self.armed = 0, True

    def arrived(self, parameter: torch.nn.Parameter) -> None:
        if not self.armed or id(parameter) in self.ready:
            return
        self.ready.add(id(parameter))
        self.buckets[self.order[id(parameter)]].missing -= 1
        while self.launched < len(self.buckets) and not self.buckets[self.launched].missing:
            self._launch(self.buckets[self.launched])

    def _launch(self, bucket: Bucket) -> None:
        """Buckets leave in one order everywhere, whatever order their gradients came in."""
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket.parameters]
        bucket.flat = torch.cat([g.reshape(-1) for g in parts]).mul_(self.weight.value)
        bucket.work = dist.all_reduce(bucket.flat, async_op=True)
        self.launched += 1

    def finish(self) -> None:
        """Before the optimizer: everything has travelled; parameters nobody used have a gradient of zero."""
        if not self.armed:
            return
        self.armed = False
        for bucket in self.buckets[self.launched :]:
            self._launch(bucket)
        for bucket in self.buckets:
            bucket.work.wait()
            assert bucket.flat is not None
            at = 0
            for p in bucket.parameters:
                part = bucket.flat[at : at + p.numel()].view_as(p)
                at += p.numel()
                if p.grad is None:
                    p.grad = part.clone()
                else:
                    p.grad.copy_(part)
            bucket.flat = bucket.work = None

    def abort(self) -> None:
        self.armed = False
        for bucket in self.buckets:
            bucket.flat = bucket.work = None

    def close(self) -> None:
        for hook in self.hooks:
            hook.remove()


def buckets_of(model: torch.nn.Module, weight: Weight, limit: int = BUCKET) -> Buckets:
    """Last parameters first, as gradients arrive; one dtype and device per bucket."""
    made: list[Bucket] = []
    key, size = None, 0
    for p in reversed([p for p in model.parameters() if p.requires_grad]):
        if key != (p.dtype, p.device) or size + p.nbytes > limit:
            made.append(Bucket([]))
            key, size = (p.dtype, p.device), 0
        made[-1].parameters.append(p)
        size += p.nbytes
    buckets = Buckets(weight, made)
    for number, bucket in enumerate(made):
        for p in bucket.parameters:
            buckets.order[id(p)] = number
            hook = p.register_post_accumulate_grad_hook(buckets.arrived)  # type: ignore[no-untyped-call]
            buckets.hooks.append(hook)
    return buckets


class WeightedReduceScatter:
    """FSDP2's reduce-scatter with this member's weight applied first; weights add up to one."""

    def __init__(self, weight: Weight) -> None:
        self.weight = weight

    def allocate(self, size: Any, *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        op: Any,
        async_op: bool = False,
    ) -> Any:
        del op  # a sum of weighted parts is the average
        input_tensor.mul_(self.weight.value)
        return dist.reduce_scatter_tensor(output_tensor, input_tensor, dist.ReduceOp.SUM, group, async_op)


def _ddp_hook(weight: Weight, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    data = bucket.buffer().mul_(weight.value)
    work = dist.all_reduce(data, async_op=True)
    future: torch.futures.Future[Any] = work.get_future()
    return future.then(lambda f: f.value()[0])


def attach_weights(model: torch.nn.Module, weight: Weight, world: int) -> Buckets | None:
    """Make a model's gradients weighted sums; returns what reduces them if the model does not."""
    if isinstance(model, DistributedDataParallel):
        model.register_comm_hook(weight, _ddp_hook)
        return None
    parts = [m for m in model.modules() if isinstance(m, FSDPModule)]
    for part in parts:
        part.set_custom_reduce_scatter(WeightedReduceScatter(weight))  # type: ignore[arg-type]
        part.set_gradient_divide_factor(1.0)
    if parts or world == 1 or not replicated(model):
        return None
    return buckets_of(model, weight)


@dataclass(slots=True)
class TreeReduction:
    """Gradients of fixed micro-batches, added up in a fixed tree: the same bits for any number of members."""

    virtual: int
    rank: int
    world: int
    parameters: list[torch.nn.Parameter]
    sums: Summing[torch.Tensor] = field(init=False)

    def __post_init__(self) -> None:
        first, count = even(self.virtual, self.world, self.rank)
        self.sums = Summing(self.virtual, first, first + count, torch.add)

    def sizes(self, total: int) -> list[int]:
        """How many samples each micro-batch of a window of `total` has."""
        return [even(total, self.virtual, v)[1] for v in range(self.virtual)]

    def harvest(self, weight: float) -> None:
        """After one micro-batch's backward pass: take its gradients."""
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        self.sums.leaf(torch.cat([g.reshape(-1) for g in parts]).mul_(weight))
        for p in self.parameters:
            p.grad = None

    def finish(self) -> None:
        """Before the optimizer: exchange what each member added up, and add up the rest everywhere alike."""
        size = sum(p.numel() for p in self.parameters)
        like = self.parameters[0]
        everyone = [even(self.virtual, self.world, r) for r in range(self.world)]
        spans = [nodes(self.virtual, first, first + count) for first, count in everyone]
        most = max(len(s) for s in spans)
        mine = torch.zeros(most, size, dtype=like.dtype, device=like.device)
        for i, (_, value) in enumerate(self.sums.done):
            mine[i] = value
        gathered = [torch.empty_like(mine) for _ in range(self.world)] if self.world > 1 else [mine]
        if self.world > 1:
            dist.all_gather(gathered, mine)
        known = {span: gathered[r][i] for r, of in enumerate(spans) for i, span in enumerate(of)}
        total, at = combined(self.virtual, known, torch.add), 0
        for p in self.parameters:
            p.grad = total[at : at + p.numel()].view_as(p).clone()
            at += p.numel()
