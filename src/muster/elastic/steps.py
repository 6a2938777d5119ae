"""One step of a run: the block that becomes part of the model as a whole, or not at all."""

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from muster.elastic.data import Item
from muster.elastic.order import seed_of

if TYPE_CHECKING:
    from muster.elastic.run import Run


@dataclass(slots=True)
class Step:
    """The time between a batch and the state that includes it."""

    run: "Run"

    def __enter__(self) -> "Step":
        try:
            self.run._enter_step()
        except Exception as error:
            if not self.run._survivable(error):
                raise
            self.run.trouble = True
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if error is None:
            try:
                self.run._leave_step()
            except Exception as late:
                if self.run._fail_step(late):
                    return True
                raise
            return False
        return self.run._fail_step(error)


@dataclass(slots=True)
class Micro:
    """The fixed micro-batches of one step that fall to this member: compute and backward each in turn."""

    run: "Run"
    item: Item

    def __iter__(self) -> Iterator[Any]:
        run, item = self.run, self.item
        assert run.tree is not None
        first = run.tree.sums.first
        total = item.total or 1
        sizes = run.tree.sizes(total)
        for i, part in enumerate(item.parts):
            seed_everything(seed_of(run.seed, run.steps, first + i))
            yield part
            run.tree.harvest(sizes[first + i] / total)


def seed_everything(seed: int) -> None:
    """Randomness of a step depends on the run's seed, the step and the rank, not on what happened before."""
    torch.manual_seed(seed)
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed & 0xFFFFFFFF)
