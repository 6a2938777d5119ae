"""The library inside a PyTorch job: training that survives its cluster.

Importing the package imports no torch, so that the scheduler and the agents can read `protocol` and
the other pure modules; the names a training script needs arrive with the first use of them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster.elastic.attaching import attach
    from muster.elastic.data import Data, Shards, Streams
    from muster.elastic.run import Run

__all__ = ["Data", "Run", "Shards", "Streams", "attach"]

_HOME = {"Data": "data", "Shards": "data", "Streams": "data", "Run": "run", "attach": "attaching"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"muster.elastic.{_HOME[name]}"), name)
