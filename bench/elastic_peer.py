"""The peer's script: the same training under torch.distributed.elastic, which restarts everybody and reads a file."""

import argparse
import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--notes", type=Path, required=True)
    p.add_argument("--steps", type=int, default=100000)
    o = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, saved = dist.get_rank(), o.notes / "checkpoint.pt"
    model = DistributedDataParallel(nn.Sequential(nn.Linear(12, 33), nn.ReLU(), nn.Linear(33, 5)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    first = 0
    if saved.exists():
        state = torch.load(saved)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
    with (o.notes / f"worker-{os.getpid()}.jsonl").open("w") as out:
        for step in range(first + 1, o.steps):
            points, labels = torch.randn(6, 12), torch.randint(5, (6,))
            nn.functional.cross_entropy(model(points), labels).backward()  # type: ignore[no-untyped-call]
            time.sleep(0.02)
            optimizer.step()
            optimizer.zero_grad()
            if step % 10 == 0 and rank == 0:
                fresh = saved.with_suffix(".new")
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, fresh)
                fresh.replace(saved)
            note = {"step": step, "rank": rank, "pid": os.getpid(), "at": time.time()}
            print(json.dumps(note), file=out, flush=True)


if __name__ == "__main__":
    main()
