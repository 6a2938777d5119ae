"""A small model that trains through membership changes: python -m muster.elastic.launch --workers 2
this.py
"""

import argparse

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

from muster.elastic import Data, attach


class Digits(torch.utils.data.Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Points in sixteen dimensions and which of four random directions they lean towards."""

    def __init__(self, size: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.points = torch.randn(size, 16, generator=generator)
        self.labels = (self.points @ torch.randn(16, 4, generator=generator)).argmax(1)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.points[index], self.labels[index]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--sharded", action="store_true", help="FSDP2 instead of plain replication")
    options = parser.parse_args()

    def build(mesh: DeviceMesh) -> tuple[nn.Module, torch.optim.Optimizer]:
        model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
        if options.sharded:
            fully_shard(model, mesh=mesh)
        return model, torch.optim.AdamW(model.parameters(), lr=1e-2)

    run = attach(build, Data(Digits(options.samples), batch=64, passes=options.passes))
    for points, labels in run:
        with run.step():
            loss = nn.functional.cross_entropy(run.model(points), labels)
            loss.backward()  # type: ignore[no-untyped-call]
            run.optimizer.step()
            run.optimizer.zero_grad()
        if run.steps % 50 == 0 and run.rank == 0:
            print(f"step {run.steps}, {run.world} workers, loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
