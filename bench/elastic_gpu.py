"""Snapshots of a GPU's state: what a training step notices of them, beside torch's async_save in the same process.

Run by `make bench-elastic`, or alone: python -m bench.elastic_gpu. Without a CUDA device it says so and measures
nothing. One GPU shows neither NCCL's abort nor transfers between hosts.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from muster.elastic import Data, attach

WIDTH = 8192


class Rows(torch.utils.data.Dataset[int]):
    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> int:
        return index


def worker(options: argparse.Namespace) -> None:
    """The training process: phases with and without snapshots, interleaved, then torch's own asynchronous save."""
    torch.backends.cuda.matmul.allow_tf32 = True
    width, most = (WIDTH, 2048) if options.device != "cpu" else (1024, 16)

    def build(mesh: DeviceMesh) -> tuple[nn.Module, torch.optim.Optimizer]:
        del mesh
        with torch.device(options.device):
            model = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(options.layers)))
        return model, torch.optim.Adam(model.parameters(), lr=1e-4, fused=options.device != "cpu")

    run = attach(build, Data(Rows(), batch=1, passes=1), device=options.device, snapshot_every=10**9)
    steps = iter(run)
    tokens = torch.randn(most, width, device=options.device)

    def step() -> float:
        next(steps)
        begun = time.perf_counter()
        with run.step():
            run.model(tokens).square().mean().backward()
            run.optimizer.step()
            run.optimizer.zero_grad(set_to_none=True)
        wait(options.device)
        return time.perf_counter() - begun

    for _ in range(3):
        step()
    rows = int(most * options.milliseconds / 1e3 / min(step() for _ in range(4)))
    tokens = torch.randn(max(rows, 1), width, device=options.device)
    for _ in range(3):
        step()
    run.every = 1  # the optimizer has its state by now: let that be laid out too
    step()
    run.every = 10**9
    shots = run.snapshots
    assert shots is not None and shots.plan is not None
    deadline = time.monotonic() + 120
    while not shots.ready() and time.monotonic() < deadline:
        time.sleep(0.01)
    result: dict[str, Any] = {"device": name_of(options.device), "torch": torch.__version__}
    result["state_gb"] = shots.plan.data / 1e9
    result["bare_gb_s"] = bare(options.device)
    run.every = options.every
    for _ in range(8):
        step()
    result["registration_s_per_gb"] = shots.lock_seconds / (len(shots.targets) * shots.plan.size / 1e9)
    plain, saving, copies, spills, fences = [], [], [], [], []
    for _ in range(options.rounds):
        run.every = 10**9
        shots.settle()
        plain += [step() for _ in range(6)]
        run.every, taken = options.every, shots.taken
        for _ in range(12):
            before = shots.copying
            saving.append(step())
            fences.append(run.fenced)
            if shots.taken != taken:
                taken = shots.taken
                if before is not None:
                    copies.append(before.seconds)
                    spills.append(before.spilled)
    base = statistics.median(plain)
    count = max(len(copies), 1)
    result |= {
        "step_ms": base * 1e3,
        "step_p99_ms": quantile(plain, 0.99) * 1e3,
        "saving_step_ms": statistics.median(saving) * 1e3,
        "saving_step_mean_ms": statistics.mean(saving) * 1e3,
        "saving_step_p99_ms": quantile(saving, 0.99) * 1e3,
        "overhead": statistics.mean(saving) / statistics.mean(plain) - 1,
        "stall_per_snapshot_ms": (sum(saving) - len(saving) * statistics.mean(plain)) / count * 1e3,
        "fence_ms": statistics.median(fences) * 1e3,
        "fence_p99_ms": quantile(fences, 0.99) * 1e3,
        "snapshots": count,
        "saving_steps": len(saving),
        "skipped": run.skipped,
        "copy_gb_s": shots.plan.data / 1e9 / statistics.median(copies) if copies else 0.0,
        "spilled_gb": statistics.median(spills) / 1e9 if spills else 0.0,
        "committed": run.committed,
        "steps": run.steps,
    }
    run.every = 10**9
    shots.settle()
    if options.asynchronous:
        result["async_save"] = peer(run, step)
    options.out.write_text(json.dumps(result))
    os._exit(0)


def wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def name_of(device: str) -> str:
    return "CPU" if device == "cpu" else torch.cuda.get_device_name()


def quantile(values: list[float], q: float) -> float:
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def bare(device: str) -> float:
    """A pinned copy of the same chunk size with nothing else going on."""
    host = torch.empty(1 << 30, dtype=torch.uint8, pin_memory=device != "cpu")
    data = torch.empty(1 << 30, dtype=torch.uint8, device=device)
    found = []
    for _ in range(6):
        wait(device)
        begun = time.perf_counter()
        for at in range(0, 1 << 30, 32 << 20):
            host[at : at + (32 << 20)].copy_(data[at : at + (32 << 20)], non_blocking=True)
        wait(device)
        found.append(host.numel() / 1e9 / (time.perf_counter() - begun))
    return statistics.median(found)


def peer(run: Any, step: Any) -> dict[str, float]:
    """torch.distributed.checkpoint.async_save of the same tensors, as its documentation shows it."""
    from torch.distributed.checkpoint.state_dict_saver import async_save

    from muster.elastic.state import tensors

    state = {name: tensor.detach() for name, tensor in tensors(run.model, run.optimizer)}
    blocked = []
    with tempfile.TemporaryDirectory() as scratch:
        for i in range(2):
            wait(run.device)
            begun = time.perf_counter()
            future: Any = async_save(state, checkpoint_id=f"{scratch}/{i}", no_dist=True)
            blocked.append(time.perf_counter() - begun)
            step()
            future.result()
    return {"first_blocked_s": blocked[0], "second_blocked_s": blocked[1]}


def measure(arguments: list[str]) -> dict[str, Any]:
    """Run the training process under an agent and return what it found."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out.json"
        command = [sys.executable, "-m", "muster.elastic.launch", "--workers", "1", "--silence", "120"]
        command += [__file__, "--worker", "--out", str(out), *arguments]
        subprocess.run(command, check=False, timeout=560)
        return dict(json.loads(out.read_text())) if out.exists() else {}


def main(arguments: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    p.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    p.add_argument("--device", default="cuda")
    p.add_argument("--layers", type=int, default=16, help="of 67 million parameters each")
    p.add_argument("--milliseconds", type=float, default=150.0, help="of a step without snapshots")
    p.add_argument("--every", type=int, default=2, help="steps between snapshots")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--asynchronous", type=int, default=1, help="also measure torch's async_save")
    options = p.parse_args(arguments)
    if options.worker:
        worker(options)
        return 0
    if not torch.cuda.is_available():
        print("GPU: no CUDA device here, so the GPU part of the snapshots is not measured")
        return 0
    rest = ["--layers", str(options.layers), "--milliseconds", str(options.milliseconds)]
    rest += ["--every", str(options.every), "--rounds", str(options.rounds)]
    found = measure([*rest, "--asynchronous", str(options.asynchronous)])
    print(json.dumps(found, indent=1))
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
