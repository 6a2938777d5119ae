"""Durable checkpoints in torch's distributed checkpoint format, written part by part and checked before use.

Every agent writes the part its memory holds; the first one adds the index once all parts are there and then
gives the directory its final name. Besides torch's files there is `muster.json`: checksums of all files, the
position in the data, and the numbers that are not tensors. Only directories with an intact `muster.json` are
ever read back.
"""

import json
import mmap
import os
import pickle
import shutil
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any
from zlib import crc32

import torch
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    SavePlan,
    SavePlanner,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from torch.distributed.checkpoint.state_dict_loader import load as load_tensors

from muster.elastic.arena import pieces_of, sums_of
from muster.elastic.layout import Piece
from muster.elastic.state import prepare, tensors

KEEP = 2
PATIENCE = 600.0
BLOCK = 8 << 20


class Damaged(OSError):
    """A checkpoint that cannot be trusted, and why."""


class Resolver(SavePlanner):
    """Hands the writer views of a sealed shard; all other planning is done already."""

    def __init__(self, views: dict[MetadataIndex, torch.Tensor]) -> None:
        self.views = views

    def resolve_data(self, write_item: WriteItem) -> torch.Tensor | BytesIO:
        return self.views[write_item.index]

    def set_up_planner(self, state_dict: Any, storage_meta: Any = None, is_coordinator: bool = False) -> None:
        raise NotImplementedError

    def create_local_plan(self) -> SavePlan:
        raise NotImplementedError

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        raise NotImplementedError

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        raise NotImplementedError


def _dtype(piece: Piece) -> torch.dtype:
    return getattr(torch, piece.dtype)  # type: ignore[no-any-return]


def _item(piece: Piece) -> WriteItem:
    offset, size = torch.Size(piece.box.offset), torch.Size(piece.box.size)
    return WriteItem(
        MetadataIndex(piece.name, offset),
        WriteItemType.SHARD,
        tensor_data=TensorWriteData(
            ChunkStorageMetadata(offset, size), TensorProperties(_dtype(piece)), torch.Size(piece.shape)
        ),
    )


def write_part(order: dict[str, Any]) -> None:
    """Write the shard described by `order`, then the index if this is the first part."""
    end = order["data"] + order["manifest"]
    memory = mmap.mmap(order["fd"], end)
    if sums_of(memoryview(memory)) != tuple(order["sums"]):
        raise Damaged("the snapshot changed in memory since it was sealed")
    manifest = json.loads(memory[order["data"] : end])
    data = torch.frombuffer(memory, dtype=torch.uint8)
    pieces = pieces_of(manifest)
    views = {_item(p).index: data[p.at : p.at + p.nbytes].view(_dtype(p)).view(p.box.size) for p in pieces if p.nbytes}
    where = Path(order["store"]) / f".step-{order['step']:010d}-{order['epoch']}"
    where.mkdir(parents=True, exist_ok=True)
    writer = FileSystemWriter(where, single_file_per_rank=True, sync_files=True)
    writer.set_up_storage_writer(is_coordinator=order["index"] == 0)
    plans = writer.prepare_global_plan([SavePlan([_item(p) for p in pieces if p.nbytes])] * order["of"])
    results = writer.write_data(plans[order["index"]], Resolver(views)).wait()
    files = sorted({r.storage_data.relative_path for r in results})
    _publish(
        where / f"part-{order['index']}",
        pickle.dumps({"results": results, "manifest": manifest, "sums": {f: _sum(where / f) for f in files}}),
    )
    if order["index"] == 0:
        _finish(where, writer, order)


def _publish(path: Path, data: bytes) -> None:
    fresh = path.with_name(path.name + ".new")
    with fresh.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(path)


def _sum(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            crc = crc32(block, crc)
    return crc


def _parts(where: Path, of: int) -> list[dict[str, Any]]:
    until = time.monotonic() + PATIENCE
    paths = [where / f"part-{i}" for i in range(of)]
    while not all(p.exists() for p in paths):
        if time.monotonic() > until:
            raise Damaged(f"{where}: not all of {of} parts were written within {PATIENCE:.0f} s")
        time.sleep(0.02)
    # Written a moment ago by agents of this very job, in a directory only they write to.
    return [pickle.loads(p.read_bytes()) for p in paths]  # noqa: S301


def _finish(where: Path, writer: FileSystemWriter, order: dict[str, Any]) -> None:
    parts = _parts(where, order["of"])
    index: dict[str, Any] = {}
    for part in parts:
        for piece in pieces_of(part["manifest"]):
            found = index.setdefault(
                piece.name,
                TensorStorageMetadata(TensorProperties(_dtype(piece)), torch.Size(piece.shape), []),
            )
            found.chunks.append(ChunkStorageMetadata(torch.Size(piece.box.offset), torch.Size(piece.box.size)))
    writer.finish(Metadata(index), [p["results"] for p in parts])
    sums = {k: v for p in parts for k, v in p["sums"].items()} | {".metadata": _sum(where / ".metadata")}
    extra = {k: v for k, v in parts[0]["manifest"].items() if k != "pieces"}
    note = {
        "step": order["step"],
        "sums": sums,
        "extra": extra,
        "data": [p["manifest"]["data"] for p in parts],
    }
    _publish(where / "muster.json", json.dumps(note).encode())
    for i in range(order["of"]):
        (where / f"part-{i}").unlink()
    final = where.with_name(f"step-{order['step']:010d}")
    if final.exists():
        shutil.rmtree(final)
    where.rename(final)
    _prune(final.parent)


def _prune(store: Path) -> None:
    """Keep the newest few, and half-written ones only while somebody may still be writing them."""
    done = sorted(store.glob("step-*"))
    for old in done[:-KEEP]:
        shutil.rmtree(old, ignore_errors=True)
    for torn in store.glob(".step-*"):
        if done and torn.name[1:] < done[-1].name and time.time() - torn.stat().st_mtime > PATIENCE:
            shutil.rmtree(torn, ignore_errors=True)


def verify(path: Path) -> dict[str, Any]:
    """The checkpoint's note, once every file is found to be what was written."""
    try:
        note: dict[str, Any] = json.loads((path / "muster.json").read_text())
        with ThreadPoolExecutor(4) as pool:
            sums = dict(zip(note["sums"], pool.map(lambda f: _sum(path / f), note["sums"]), strict=True))
    except (OSError, ValueError, KeyError) as error:
        raise Damaged(f"{path} is incomplete: {error}") from None
    if bad := [f for f, s in sums.items() if s != note["sums"][f]]:
        raise Damaged(f"{path}: {bad[0]} is not what was written (checksum)")
    return note


def newest(store: str) -> str:
    """The newest intact checkpoint; damaged ones are named and passed over."""
    for path in sorted(Path(store).glob("step-*"), reverse=True):
        try:
            verify(path)
        except Damaged as error:
            print(f"muster.elastic: {error}; an older one is used", file=sys.stderr)  # noqa: T201
        else:
            return str(path)
    return ""


def load(path: str, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> tuple[dict[str, Any], list[Any]]:
    """Fill model and optimizer, whatever their layout, and return what else was saved."""
    note = json.loads((Path(path) / "muster.json").read_text())
    found = FileSystemReader(path).read_metadata().state_dict_metadata
    shapes = {
        name: (str(m.properties.dtype).removeprefix("torch."), tuple(m.size))
        for name, m in found.items()
        if isinstance(m, TensorStorageMetadata)
    }
    prepare(model, optimizer, shapes, note["extra"]["optimizer"])
    wanted = dict(tensors(model, optimizer))
    for name, tensor in wanted.items():
        if name not in shapes or shapes[name][1] != tuple(tensor.shape):
            raise Damaged(
                f"{path}: {name} is {shapes.get(name, ('', 'absent'))[1]} there and {tuple(tensor.shape)} in the"
                " model; load it with the model that was saved"
            )
    with torch.no_grad(), warnings.catch_warnings():
        # Each process reads its own part by itself; torch warns that nobody else is asked.
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        load_tensors({n: t.detach() for n, t in wanted.items()}, checkpoint_id=path, no_dist=True)
    return note["extra"], note["data"]


if __name__ == "__main__":
    write_part(json.loads(sys.argv[1]))
