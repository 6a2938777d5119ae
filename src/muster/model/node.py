"""A node: what it has, how it is labelled, and whether anything may start there."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.model.resources import Resources
from muster.model.rules import Taint


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    capacity: Resources  # allocatable, in Kubernetes' words
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    schedulable: bool = True  # not cordoned
    ready: bool = True
