"""Which GPUs of a node a container gets, by index, as a device plugin would hand them out."""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.local.api.access import Object

GPU = "nvidia.com/gpu"


@dataclass(slots=True)
class Devices:
    """The GPUs of one node; lowest free index first."""

    count: int
    _holder: dict[int, str] = field(default_factory=dict)

    def take(self, holder: str, wanted: int) -> list[int] | None:
        """Indices for a container, the same ones if it asks again; None when too few are free."""
        mine = [index for index, who in self._holder.items() if who == holder]
        free = [index for index in range(self.count) if index not in self._holder]
        if len(mine) + len(free) < wanted:
            return None
        mine = sorted([*mine, *free[: max(0, wanted - len(mine))]])
        self._holder |= dict.fromkeys(mine, holder)
        return mine

    def give(self, holder: str) -> None:
        self._holder = {index: who for index, who in self._holder.items() if who != holder}


def wanted(container: Object) -> int:
    resources = container.get("resources") or {}
    asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}.get(GPU, 0)
    return int(asked)


def variables(indices: list[int]) -> dict[str, str]:
    """The usual variables; a container that asked for no GPU is told to see none."""
    listed = ",".join(map(str, indices))
    return {"CUDA_VISIBLE_DEVICES": listed, "NVIDIA_VISIBLE_DEVICES": listed or "void"}
