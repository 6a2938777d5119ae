"""Amounts of resources: integers by name, in Kubernetes' own base units (milli-CPU, bytes, pieces)."""

from collections.abc import Mapping

Resources = Mapping[str, int]
"""What a pod asks for or a node has, by resource name. `cpu` is in thousandths, memory in bytes, the rest in pieces."""
