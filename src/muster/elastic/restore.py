"""Bringing a worker to the one step its epoch continues from: from survivors, from agents' memory, from
disk.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from muster.elastic.data import Feed
from muster.elastic.peer import Peers
from muster.elastic.protocol import Document, Restore, Shard, Source
from muster.elastic.state import coded, decoded, entries, prepare, saved_parts, scalars
from muster.elastic.transfer import Archive, archive, fill, located

if TYPE_CHECKING:
    from muster.elastic.run import Run


def numbers(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, extras: Mapping[str, Any], step: int, feed: Feed
) -> dict[str, Any]:
    """Everything beside tensors: optimizer numbers, extras, the step and the data's position."""
    return {
        "step": step,
        "optimizer": scalars(model, optimizer),
        "extras": {k: coded(v.state_dict(), k) for k, v in extras.items()},
        "data": feed.position(),
    }


@dataclass(slots=True)
class Restorer:
    peers: Peers
    fetched: int = 0  # bytes that came from other processes' memory
    store: Any = field(default=None)

    def run(self, run: "Run", document: Document, stands: bool, kept: Any) -> None:
        restore = document.restore
        assert restore is not None
        match restore.source:
            case Source.STORE:
                self._from_store(run)
            case Source.LIVE:
                self._from_live(run, document, restore, stands, kept)
            case Source.SHARDS:
                found = located(restore, document.epoch, self.peers, run._check)
                self._from_memory(run, archive(found, self.peers, run._check))

    def _from_live(self, run: "Run", document: Document, restore: Restore, stands: bool, kept: Any) -> None:
        """Survivors stay as they are and hand out slices of their state to those who need it."""
        if not stands:
            found = located(restore, document.epoch, self.peers, run._check)
            self._from_memory(run, archive(found, self.peers, run._check))
            return
        if kept is not None:
            _adopt(run, kept, restore.step)
        if len(restore.live) < len(document.members) and run.snapshots is not None:
            assert run.control is not None
            index = restore.live.index(run.control.me(document))
            parts = saved_parts(entries(run.model, run.optimizer, index, len(restore.live)))
            shard = Shard(restore.step, document.epoch, index, len(restore.live), True)
            run.snapshots.hand_over(parts, shard, run._numbers())

    def _from_memory(self, run: "Run", found: Archive) -> None:
        extra = found.first
        prepare(run.model, run.optimizer, found.shapes(), extra["optimizer"])
        wanted = entries(run.model, run.optimizer, run.comm.rank, run.comm.world)
        with torch.no_grad():
            self.fetched += fill(wanted, found, self.peers, run._check)
        positions = [m["data"] for _, m in found.manifests]
        _continue(run, extra, positions)

    def _from_store(self, run: "Run") -> None:
        """Nobody holds anything in memory: the newest durable checkpoint that is intact, or the beginning."""
        import os

        path = os.environ.get("MUSTER_ELASTIC_STORE", "")
        if not path:
            return
        from muster.elastic.checkpoint import load, newest

        chosen = self._agree(run, lambda: newest(path))
        if chosen:
            extra, positions = load(chosen, run.model, run.optimizer)
            _continue(run, extra, positions)

    @staticmethod
    def _agree(run: "Run", choose: Callable[[], str]) -> str:
        """The first member verifies and chooses; the others wait for its word."""
        store = run.comm.store
        if store is None:
            return choose()
        if run.comm.rank == 0:
            store.set("checkpoint", json.dumps(choose()))
        return str(json.loads(store.get("checkpoint")))


def _continue(run: "Run", extra: dict[str, Any], positions: list[dict[str, Any]]) -> None:
    run.steps = extra["step"]
    for name, keeper in run.extras.items():
        if name not in extra["extras"]:
            raise ValueError(f"the snapshot has no state for {name!r}: restore with the extras it was taken with")
        keeper.load_state_dict(decoded(extra["extras"][name]))
    run.feed.seek(positions)


def _adopt(run: "Run", kept: Any, step: int) -> None:
    """A wrapper was built anew around fresh parameters: take over the values of the old ones in this
    process.
    """
    model, optimizer, extras = kept
    old = {e.name: e for e in entries(model, optimizer, 0, 1)}
    prepare(run.model, run.optimizer, {n: (e.dtype, e.shape) for n, e in old.items()}, scalars(model, optimizer))
    with torch.no_grad():
        for entry in entries(run.model, run.optimizer, 0, 1):
            entry.tensor.copy_(old[entry.name].tensor)
    for name, keeper in run.extras.items():
        keeper.load_state_dict(extras[name].state_dict())
    run.steps = step
