"""The way into a job for a training script."""

from collections.abc import Callable

import torch

from muster.elastic.channel import inherited
from muster.elastic.comm import Comm
from muster.elastic.control import Control
from muster.elastic.data import Feed
from muster.elastic.peer import Peers
from muster.elastic.restore import Restorer
from muster.elastic.run import Build, Run
from muster.elastic.snapshot import Copying, Plan, Snapshots, Target
from muster.elastic.wire import job_secret


def attach(
    build: Build,
    data: Feed,
    *,
    seed: int = 0,
    device: str = "cpu",
    tensor_parallel: int = 1,
    snapshot_every: int | None = None,
    virtual: int = 0,
) -> Run:
    """Make this process part of a job, or of a world of one if no launcher started it.

    `build(mesh)` returns the model and its optimizer, and optionally a mapping of further things with a
    state_dict (a learning-rate schedule, say) by name. `snapshot_every` is the number of steps between
    snapshots; without it there is one whenever a buffer is free. `virtual` makes results independent of the
    world's size, at a cost: batches then arrive as that many micro-batches per step.
    """
    if virtual and tensor_parallel > 1:
        raise ValueError("virtual micro-batches need replicated parameters: tensor_parallel must be 1")
    comm = Comm(device)
    channel = inherited()
    control = None if channel is None else Control(channel, comm.release)
    run = Run(build, data, seed, device, tensor_parallel, snapshot_every, virtual, control, comm)
    run.restorer = Restorer(Peers(b"") if control is None else Peers(job_secret()))
    if control is not None:
        run.snapshots = Snapshots(control, _copier(device), device)
        control.arrived = run.snapshots.arrived if device != "cpu" else None
        control.start()
    return run


def _copier(device: str) -> Callable[[Plan, Target], Copying]:
    if device == "cpu":
        return Copying
    from muster.elastic.device import DeviceCopying

    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    return lambda plan, target: DeviceCopying(plan, target, stream)
