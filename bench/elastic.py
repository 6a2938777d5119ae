"""What a change costs the elastic runtime, beside torch's own ways in the same run: `make bench-elastic`.

Recovery and resizing with real processes over gloo on this machine, the stall of snapshots, checksum and transfer
rates, and restoring from memory and from disk as functions of bytes. The GPU's part is in `elastic_gpu`.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from tests.elastic.jobs import Job, job

from bench import elastic_gpu
from muster.elastic.arena import Arena, described, sums_of
from muster.elastic.checkpoint import load, newest, write_part
from muster.elastic.keyvalue import KeyValue
from muster.elastic.peer import Peers, PeerServer
from muster.elastic.protocol import Shard
from muster.elastic.snapshot import planned
from muster.elastic.state import entries, saved_parts, scalars
from muster.elastic.transfer import Origin, archive, fill

TRIES = 3
PEER = Path(__file__).with_name("elastic_peer.py")


def recovery(directory: Path, *launcher: str) -> float:
    """Seconds from kill -9 of one of two workers to the end of the next step."""
    options = ("--workers", "2", "--silence", "5", *launcher)
    with job(directory, *options, script=("--samples", "100000")) as running:
        running.reaches(2)
        time.sleep(6.0)  # a standby needs that long to become warm on two cores; there is nothing to wait on
        before = max(n["epoch"] for n in running.steps())
        begun = time.time()
        os.kill(running.worker(1), signal.SIGKILL)
        return next_step(running, before) - begun


def next_step(running: Job, before: int) -> float:
    running.wait(lambda: any(n["epoch"] > before for n in running.steps()))
    return min(float(n["at"]) for n in running.steps() if n["epoch"] > before)


def resizing(directory: Path) -> list[float]:
    """Seconds from the request for another size to the end of the first step at it."""
    found = []
    with job(directory, "--workers", "2", script=("--samples", "100000")) as running:
        running.reaches(2)
        for size in (1, 2, 1, 2):
            before = max(n["epoch"] for n in running.steps())
            begun = time.time()
            running.resize(size)
            found.append(next_step(running, before) - begun)
            running.past(10)
    return found


def restart(directory: Path) -> float:
    """The same kill under torch.distributed.elastic: seconds to the end of the next step of a restarted world."""
    directory.mkdir()
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += ["--max-restarts=3", str(PEER), "--notes", str(directory)]
    with (directory / "output").open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=os.environ | {"OMP_NUM_THREADS": "1"}
        )
    running = Job(directory, process)
    (directory / "notes").symlink_to(directory)
    try:
        running.wait(lambda: running.step() > 50)
        victim = next(n["pid"] for n in running.steps() if n["rank"] == 1)
        known = {n["pid"] for n in running.steps()}
        begun = time.time()
        os.kill(victim, signal.SIGKILL)
        running.wait(lambda: {n["pid"] for n in running.steps()} - known)
        return min(float(n["at"]) for n in running.steps() if n["pid"] not in known) - begun
    finally:
        process.terminate()
        process.wait(60)


def model_of(megabytes: int) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """A model whose parameters and Adam state take about so much memory."""
    width = int((megabytes * 1e6 / 12 / 4) ** 0.5)
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(4)))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(2, width)).sum().backward()
    optimizer.step()
    return model, optimizer


def seconds(work: Callable[[], object]) -> float:
    found = []
    for _ in range(TRIES):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return statistics.median(found)


def ignore(_: dict[str, Any]) -> None:
    """Notes between agents do not matter here."""


def never(_: int) -> bool:
    return False


def rates(megabytes: int, store: Path) -> dict[str, float]:
    """One shard of a size: its checksum, its way to another agent, and back into a model from there and from disk."""
    secret, arena, other = b"x" * 32, Arena(), Arena()
    servers = [PeerServer(a, KeyValue(), secret, ignore, never) for a in (arena, other)]
    addresses = [s.start("127.0.0.1") for s in servers]
    model, optimizer = model_of(megabytes)
    plan = planned(saved_parts(entries(model, optimizer, 0, 1)))
    position = {"size": 1, "turn": 0, "at": 0}
    note = described(plan.pieces, step=1, optimizer=scalars(model, optimizer), extras={}, data=position)
    slot = arena.grant(plan.size, lasting=False)
    assert slot is not None
    memory = torch.frombuffer(arena.buffers[slot].memory, dtype=torch.uint8)
    for part, piece in zip(plan.parts, plan.pieces, strict=True):
        into = memory[piece.at : piece.at + piece.nbytes].view(getattr(torch, piece.dtype))
        into.view(piece.box.size).copy_(part.view)
    memory[plan.data : plan.data + len(note)] = torch.frombuffer(bytearray(note), dtype=torch.uint8)
    view, end = arena.writing(slot), plan.data + len(note)
    size, shard = end / 1e9, Shard(1, 1, 0, 1)
    sums = sums_of(view[:end])
    checksum = seconds(lambda: sums_of(view[:end]))
    arena.seal(slot, shard, plan.data, len(note), sums)
    peers = Peers(secret)

    def put() -> None:
        other.drop(shard)
        peers.put(arena, shard, addresses[1])

    def restore() -> None:
        found = archive([Origin(addresses[0], shard)], peers, lambda: None)
        with torch.no_grad():
            fill(entries(model, optimizer, 0, 1), found, peers, lambda: None)

    transfer, memory_s = seconds(put), seconds(restore)
    order = {"fd": arena.buffers[slot].fd, "store": str(store), "data": plan.data, "manifest": len(note)}
    write_part(order | {"sums": list(sums)} | asdict(shard))
    disk_s = seconds(lambda: load(newest(str(store)), model, optimizer))
    return {
        "gigabytes": size,
        "checksum_gb_s": size / checksum,
        "transfer_gb_s": size / transfer,
        "restore_memory_s": memory_s,
        "restore_disk_s": disk_s,
    }


def main() -> None:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        kinds: dict[str, Callable[[int], float]] = {
            "shrunk": lambda i: recovery(root / f"shrunk-{i}"),
            "standby": lambda i: recovery(root / f"standby-{i}", "--standby"),
            "torch.distributed.elastic": lambda i: restart(root / f"peer-{i}"),
        }
        times: dict[str, list[float]] = {k: [] for k in kinds}
        for i in range(TRIES):  # interleaved, so that a busy moment of the machine hits all alike
            for kind, work in kinds.items():
                times[kind].append(work(i))
        peer = statistics.median(times["torch.distributed.elastic"])
        print("kill -9 of one of two workers to the end of the next step (median of", TRIES, "and all):")
        for kind, values in times.items():
            middle = statistics.median(values)
            print(f"  {kind:<26} {middle:6.3f} s  {peer / middle:5.1f} x  {[round(v, 3) for v in values]}")
        found["recovery"] = times
        found["resize"] = resizing(root / "resize")
        print("request for another size to the end of the next step:", [round(v, 3) for v in found["resize"]])
        found["bytes"] = [rates(size, root / f"store-{size}") for size in (16, 64, 256, 1024)]
        print("   GB   checksum  transfer   restore from memory    from disk")
        for row in found["bytes"]:
            print(
                f"{row['gigabytes']:6.3f} {row['checksum_gb_s']:6.2f} GB/s {row['transfer_gb_s']:5.2f} GB/s"
                f" {row['restore_memory_s'] * 1e3:12.1f} ms {row['restore_disk_s'] * 1e3:16.1f} ms"
            )
    found["snapshot_cpu"] = elastic_gpu.measure(["--device", "cpu", "--layers", "8", "--rounds", "3"])
    print("snapshots on the CPU:", json.dumps(found["snapshot_cpu"], indent=1))
    elastic_gpu.main([])


if __name__ == "__main__":
    main()
