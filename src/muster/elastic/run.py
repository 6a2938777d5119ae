"""What a training script sees: attach, loop over batches, wrap each step.

The loop hides every change of membership. Between two steps a run may find itself in another world: the
groups are formed anew, the model is built for the new mesh or kept where it stands, its state is filled from
memory, and the data goes on at the cursor that was committed with it.
"""

import atexit
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from muster.elastic.comm import Broken, Comm, broken_by_peer
from muster.elastic.control import Control
from muster.elastic.crash import crash_point
from muster.elastic.data import Feed, Item
from muster.elastic.order import seed_of
from muster.elastic.protocol import Document, Shard, Source
from muster.elastic.reduce import Buckets, TreeReduction, Weight, attach_weights
from muster.elastic.restore import Restorer, numbers
from muster.elastic.snapshot import Snapshots
from muster.elastic.state import entries, replicated, saved_parts
from muster.elastic.steps import Micro, Step, seed_everything
from muster.elastic.wire import job_secret


class Keeps(Protocol):
    def state_dict(self) -> Any: ...
    def load_state_dict(self, state: Any) -> Any: ...


Built = (
    tuple[torch.nn.Module, torch.optim.Optimizer] | tuple[torch.nn.Module, torch.optim.Optimizer, Mapping[str, Keeps]]
)
Build = Callable[[DeviceMesh], Built]


@dataclass(slots=True)
class Run:
    """A training run. `model`, `optimizer` and `extras` change with the membership: read them anew each
    step.
    """

    build: Build
    feed: Feed
    seed: int
    device: str
    tensor: int
    every: int | None
    virtual: int
    control: Control | None
    comm: Comm
    steps: int = 0  # completed
    model: torch.nn.Module = field(init=False)
    optimizer: torch.optim.Optimizer = field(init=False)
    extras: Mapping[str, Keeps] = field(default_factory=dict)
    weight: Weight = field(default_factory=Weight)
    reducer: Buckets | None = None
    tree: TreeReduction | None = None
    snapshots: Snapshots | None = None
    restorer: Restorer = field(init=False)
    item: Item | None = None
    built: bool = False
    clean: bool = True
    applied: bool = False
    seated: int = 0  # the epoch this run has trained in last
    stall: float = 0.0
    fenced: float = 0.0  # the host's wait at the last fence
    begun: float = 0.0
    last: int = -1  # the step of the last snapshot
    flags: torch.Tensor | None = None
    flag_work: Any = None
    stop: bool = False
    trouble: bool = False
    saved_buffers: list[torch.Tensor] = field(default_factory=list)
    micro: Micro | None = None
    used: Any = None
    planned_size: int = -1

    # -- the loop --------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        if not self.built:
            self._join()
        while True:
            if self._must_move():
                self._join()
            try:
                item = self._next()
            except Exception as error:
                if not self._survivable(error):
                    raise
                self.trouble = True
                self._join()
                continue
            if item is None:
                self._finish()
                return
            done = self.steps
            yield self._offer(item)
            if self.steps == done and self.clean and not self._must_move():
                raise RuntimeError("a batch was not used: wrap the work on each batch in `with run.step():`")

    def _must_move(self) -> bool:
        if self.control is None:
            return False
        return self.stop or self.trouble or not self.clean or self.control.interrupted(self.comm.epoch)

    def _next(self) -> Item | None:
        """This member's part of the next step; None once nobody has any."""
        if self.item is None:
            item = self.feed.next()
            if item is not None and item.total is None:
                count = torch.tensor([item.samples], dtype=torch.int64)
                if self.comm.world > 1:
                    dist.all_reduce(count)
                item = Item(item.batch, item.samples, int(count), item.after, item.parts) if int(count) else None
            self.item = item
        return self.item

    def _offer(self, item: Item) -> Any:
        if item.batch is None and not self.virtual:
            if self.used is None:
                self.used = self.feed.template()
            return self.used
        self.used = item.batch
        if self.virtual:
            self.micro = Micro(self, item)
            return self.micro
        return item.batch

    def step(self) -> Step:
        return Step(self)

    @property
    def rank(self) -> int:
        return self.comm.rank // self.tensor

    @property
    def world(self) -> int:
        return self.comm.world // self.tensor

    @property
    def committed(self) -> int:
        """The newest step that survives the loss of any one failure domain; -1 if there is none yet."""
        return self.control.saved if self.control else -1

    @property
    def skipped(self) -> int:
        return self.snapshots.skipped if self.snapshots else 0

    # -- one step ----------------------------------------------------------------------------------------

    def _enter_step(self) -> None:
        if self.item is None:
            raise RuntimeError("`with run.step():` belongs inside `for batch in run:`")
        seed_everything(seed_of(self.seed, self.steps, self.rank))
        self.begun = time.monotonic()
        self.weight.value = self.item.samples / max(self.item.total or 0, 1)
        self.applied = False
        self.saved_buffers = [b.clone() for b in self.model.buffers()]
        if self.reducer is not None:
            self.reducer.begin()
        if self.virtual:
            self.tree = TreeReduction(
                self.virtual, self.rank, self.world, [p for p in self.model.parameters() if p.requires_grad]
            )

    def _before_optimizer(self, *_: Any) -> None:
        """The fence: gradients are complete, and nothing that the optimizer writes is still being copied."""
        if self.trouble:
            raise Broken("this step has lost a member")
        if self.applied or self.item is None:
            return
        if self.reducer is not None:
            self.reducer.finish()
        if self.tree is not None:
            self.tree.finish()
        if self.snapshots is not None:
            self.fenced = self.snapshots.fence()
            self.stall += self.fenced
        self._raise_flags()
        self.clean, self.applied = False, True
        crash_point("optimizer")

    def _raise_flags(self) -> None:
        """What members must agree on, on its way while the optimizer works: whether to stop, and to save."""
        leaving = int(self.control is not None and self.control.leaving(self.comm.epoch))
        lacking = int(self._due() and not (self.snapshots and self.snapshots.ready()))
        self.flags = torch.tensor([leaving, lacking, self.steps, -self.steps], dtype=torch.int64)
        if self.comm.world > 1:
            self.flag_work = dist.all_reduce(self.flags, dist.ReduceOp.MAX, async_op=True)

    def _leave_step(self) -> None:
        if not self.applied:
            raise RuntimeError("the optimizer made no step inside `with run.step():`")
        if self.flag_work is not None:
            self.flag_work.wait()
        assert self.item is not None and self.flags is not None
        leaving, lacking, most, least = self.flags.tolist()
        if most != -least:
            raise RuntimeError(f"members are at different steps, {-least} to {most}")
        self.flag_work = None
        samples = self.item.total or 0
        self.feed.commit(self.item)
        self.item, self.steps, self.clean, self.applied = None, self.steps + 1, True, False
        self.stop = bool(leaving)
        self._take(bool(lacking))
        if self.control is not None:
            self.control.say(
                "step",
                at=time.monotonic(),
                took=time.monotonic() - self.begun,
                step=self.steps,
                stall=self.stall,
                batch=samples,
                skipped=self.skipped,
            )
        self.stall = 0.0

    def _fail_step(self, error: BaseException) -> bool:
        """Whether the step may be forgotten: somebody else is gone, and the loop will find a new world."""
        self.flag_work = None
        if self.reducer is not None:
            self.reducer.abort()
        if not isinstance(error, Exception) or not self._survivable(error):
            return False
        self.trouble = True
        if not self.applied:
            self.optimizer.zero_grad()
            with torch.no_grad():
                for buffer, saved in zip(self.model.buffers(), self.saved_buffers, strict=True):
                    buffer.copy_(saved)
        return True

    def _survivable(self, error: Exception) -> bool:
        return self.control is not None and (self.comm.released or broken_by_peer(error))

    def _due(self) -> bool:
        """Whether a snapshot follows the step that begins now."""
        return self.snapshots is not None and (self.every is None or self.steps + 1 - self.last >= self.every)

    def _take(self, lacking: bool) -> None:
        """All members take a snapshot of the same step, or none does: parts of different steps are worth
        nothing.
        """
        shots = self.snapshots
        if shots is None or (self.every is not None and self.steps - self.last < self.every):
            return
        if len(self.optimizer.state) != self.planned_size:
            self._lay_out()
            lacking = True
        if lacking:
            shots.skipped += 1
        else:
            self._snapshot()

    def _snapshot(self) -> None:
        shots = self.snapshots
        if shots is None or shots.taken == self.steps:
            return
        begun = time.perf_counter()
        shots.settle()
        if len(self.optimizer.state) != self.planned_size:
            self._lay_out()
        shard = Shard(self.steps, self.comm.epoch, self.comm.rank, self.comm.world)
        shots.save(shard, self._numbers())
        self.last = self.steps
        self.stall += time.perf_counter() - begun

    def _lay_out(self) -> None:
        """The first step gives the optimizer its state: from then on there is more to save."""
        assert self.snapshots is not None
        self.planned_size = len(self.optimizer.state)
        found = entries(self.model, self.optimizer, self.comm.rank, self.comm.world)
        self.snapshots.lay_out(saved_parts(found))

    def _numbers(self) -> dict[str, Any]:
        return numbers(self.model, self.optimizer, self.extras, self.steps, self.feed)

    # -- between worlds ------------------------------------------------------------------------------------

    def _join(self) -> None:
        """Stand still, say what is left of the state, and continue with whatever epoch is committed next."""
        if self.control is None:
            self._alone()
            return
        while True:
            self._park()
            document = self.control.next_epoch(self.seated)
            try:
                self._enter(document)
            except Exception as error:
                if not self._survivable(error):
                    raise
                self.trouble = True
                self.control.say("trouble", epoch=document.epoch)
            else:
                self.control.say("resumed", epoch=document.epoch)
                return
            finally:
                self.seated = document.epoch

    def _park(self) -> None:
        if not self.built:
            if self.control is not None:
                self.control.say("ready")
            return
        assert self.control is not None
        whole = self.clean and self.feed.shared and replicated(self.model) and self.tensor == 1
        if self.snapshots is not None:
            if self.stop and self.clean and not self.trouble:
                self._snapshot()
            self.snapshots.settle()
        live = self.steps if self.clean else None
        self.control.say("parked", live=live, whole=whole, trouble=self.trouble)

    def _alone(self) -> None:
        """Without an agent: a world of one, nothing is saved."""
        self.comm.form(1, 0, 1, "", b"")
        self._construct()
        self.comm.formed()
        self._wire_up()

    def _enter(self, document: Document) -> None:
        assert self.control is not None and document.restore is not None
        restore = document.restore
        me = self.control.me(document)
        has = self.built and restore.source is not Source.STORE
        stands = has and me in restore.live and self.clean and restore.step == self.steps
        self.comm.close()
        secret, ranks = job_secret(), [m.id for m in document.members]
        self.comm.form(document.epoch, ranks.index(me), len(ranks), document.members[0].address, secret)
        self._check()
        keeps = has and _in_place(self.model) and self.tensor == 1
        kept = (self.model, self.optimizer, self.extras) if stands and not keeps and replicated(self.model) else None
        if not keeps:
            self._construct()
        self.comm.formed()
        self.restorer.run(self, document, stands, kept)
        self.clean, self.stop, self.trouble, self.item = True, False, False, None
        self._wire_up()
        if self.snapshots is not None:
            self.snapshots.taken = -1
            self._lay_out()
            self._snapshot()

    def _check(self) -> None:
        """Give up an epoch that was superseded while it was entered."""
        if self.control is not None and self.control.wanted > self.comm.epoch:
            raise Broken(f"epoch {self.comm.epoch} was superseded")

    def _construct(self) -> None:
        self.built = False
        for name in ("model", "optimizer"):
            if hasattr(self, name):
                delattr(self, name)
        self.extras, self.reducer = {}, None
        if self.snapshots is not None:
            self.snapshots.plan = None
        seed_everything(seed_of(self.seed))
        shape, names = ((self.comm.world,), ("data",))
        if self.tensor > 1:
            shape, names = ((self.comm.world // self.tensor, self.tensor), ("data", "tensor"))  # type: ignore[assignment]
        made = self.build(init_device_mesh(self.device, shape, mesh_dim_names=names))
        self.model, self.optimizer = made[0], made[1]
        self.extras = made[2] if len(made) == 3 else {}
        self.optimizer.register_step_pre_hook(self._before_optimizer)
        self.built, self.steps = True, 0

    def _wire_up(self) -> None:
        """Gradient reduction for this world, and the data from the committed position."""
        if self.reducer is not None:
            self.reducer.close()
        self.reducer = None if self.virtual else attach_weights(self.model, self.weight, self.comm.world)
        self.feed.open(self.rank, self.world, self.virtual)
        self.used = None

    def _finish(self) -> None:
        if self.control is not None:
            self._snapshot()
            if self.snapshots is not None:
                self.snapshots.settle()
            self.control.say("finished", step=self.steps)
            atexit.register(self.comm.close)


def _in_place(model: torch.nn.Module) -> bool:
    """Whether a model can stay where it is in another world: it holds everything and no group."""
    return replicated(model) and not any(isinstance(m, DistributedDataParallel) for m in model.modules())
