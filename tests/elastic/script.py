"""The training script of the real-process tests: it notes what it did with every sample."""

import argparse
import faulthandler
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from muster.elastic import Data, attach
from muster.elastic.crash import crash_point


class Points(torch.utils.data.Dataset[tuple[int, torch.Tensor, torch.Tensor]]):
    def __init__(self, size: int) -> None:
        generator = torch.Generator().manual_seed(7)
        self.points = torch.randn(size, 12, generator=generator)
        self.labels = (self.points @ torch.randn(12, 5, generator=generator)).argmax(1)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> tuple[int, torch.Tensor, torch.Tensor]:
        return index, self.points[index], self.labels[index]


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(12, width)
        self.drop = nn.Dropout(0.1)
        self.outer = nn.Linear(width, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.outer(self.drop(self.inner(x).relu()))
        return out


class Crash(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        crash_point("backward")
        return grad


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--notes", type=Path, required=True)
    p.add_argument("--samples", type=int, default=1000)
    p.add_argument("--batch", type=int, default=12)
    p.add_argument("--passes", type=int, default=1)
    p.add_argument("--layout", choices=["plain", "ddp", "fsdp"], default="plain")
    p.add_argument("--pause", type=float, default=0.05)
    p.add_argument("--width", type=int, default=33)
    p.add_argument("--every", type=int, default=None)
    p.add_argument("--virtual", type=int, default=0)
    o = p.parse_args()
    torch.set_num_threads(1)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    torch.use_deterministic_algorithms(True)

    hurry = o.notes / "hurry"
    rates: list[torch.optim.lr_scheduler.StepLR] = []

    def build(mesh: DeviceMesh) -> Any:
        model: nn.Module = Net(o.width)
        if o.layout == "fsdp":
            fully_shard(model, mesh=mesh)
        elif o.layout == "ddp":
            model = DistributedDataParallel(model)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        rates[:] = [torch.optim.lr_scheduler.StepLR(optimizer, 50, 0.9)]
        return model, optimizer, {"rate": rates[0]}

    run = attach(build, Data(Points(o.samples), o.batch, o.passes, seed=3), snapshot_every=o.every, virtual=o.virtual)
    with (o.notes / f"worker-{os.getpid()}.jsonl").open("w") as out:

        def note(**what: Any) -> None:
            print(json.dumps(what), file=out, flush=True)

        note(pid=os.getpid(), parent=os.getppid())
        for batch in run:
            item, epoch = run.item, run.comm.epoch
            assert item is not None
            ids = [int(i) for part in item.parts for i in part[0]] if item.samples else []
            # Noted before the step: whoever dies in it may have given its part already.
            note(tried=run.steps + 1, epoch=epoch, ids=ids)
            with run.step():
                total = 0.0
                for _, points, labels in batch if o.virtual else [batch]:
                    points = Crash.apply(points.requires_grad_())  # type: ignore[no-untyped-call] # noqa: PLW2901
                    loss = nn.functional.cross_entropy(run.model(points), labels)
                    loss.backward()  # type: ignore[no-untyped-call]
                    total += float(loss.detach())
                if not hurry.exists():
                    time.sleep(o.pause)
                run.optimizer.step()
                rates[0].step()
                run.optimizer.zero_grad()
            if run.clean and run.item is None:
                note(
                    step=run.steps,
                    rank=run.rank,
                    world=run.world,
                    epoch=epoch,
                    loss=total,
                    at=time.time(),
                    samples=item.samples,
                    skipped=run.skipped,
                    saved=run.committed,
                )
        weights = {n: full(p).flatten().tolist() for n, p in run.model.named_parameters()}
        note(done=True, rank=run.rank, world=run.world, steps=run.steps, weights=weights)


def full(parameter: Any) -> torch.Tensor:
    whole: torch.Tensor = parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter
    return whole.detach()


if __name__ == "__main__":
    main()
