"""The time machine: traces in, the real planning core over a simulated clock, figures and pictures out."""

from muster.sim.cluster import flat, read_cluster
from muster.sim.engine import simulate
from muster.sim.metrics import measure
from muster.sim.readers.formats import read_trace

__all__ = ["flat", "measure", "read_cluster", "read_trace", "simulate"]
