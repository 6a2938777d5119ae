"""A spelling of a gang by labels, annotations or a group object: its claim on pods, its terms, its report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from muster.dialects.cluster import Cluster, Key, Resource
from muster.dialects.reading import Reading
from muster.dialects.terms import Terms
from muster.dialects.verbs import Verb, Words
from muster.objects.decode import Decoded
from muster.objects.pods import Pod

Claim = Callable[[Pod], str | None]
"""The name of the gang a pod says it belongs to, in the pod's namespace."""

Report = Callable[[Reading, Cluster, Words, float], tuple[Verb, ...]]
"""Status writes that bring the group object up to date; none where it already says so."""


@dataclass(frozen=True, slots=True)
class Served:
    """A kind to watch for this dialect: where it is served, and the struct it decodes into."""

    resource: Resource
    type: type[Decoded]
    older: tuple[str, ...] = ()  # other versions of the same shape, in order of preference


@dataclass(frozen=True, slots=True)
class Spelling:
    """One dialect of group membership."""

    name: str
    claim: Claim
    terms: Callable[[Key, Sequence[Pod], Cluster], Terms]
    report: Report
    kinds: tuple[Served, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()  # what kubectl prints, as (name, JSON path)


def unreported(_reading: Reading, _cluster: Cluster, _words: Words, _now: float) -> tuple[Verb, ...]:
    """Where no object stands for the gang, pods' conditions and events have to do."""
    return ()
