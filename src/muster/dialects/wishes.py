"""`muster.sh/*` annotations: what Muster alone can do, said on any object of any dialect.

They may stand on the group object, on an owner or on pods; the nearer to the gang as a whole, the stronger.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from muster.dialects.terms import Problem
from muster.dialects.values import (
    ValueReadError,
    Values,
    amounts,
    count,
    curve,
    decoded,
    duration,
    flag,
    moment,
    parallelism,
    rate,
)
from muster.model.gang import Reservation
from muster.model.topology import Parallelism

PREFIX = "muster.sh/"
GANG = PREFIX + "gang"
MIN = PREFIX + "min"
MAX = PREFIX + "max"
QUEUE = PREFIX + "queue"
WALLTIME = PREFIX + "walltime"
DEADLINE = PREFIX + "deadline"
WAITING_COST = PREFIX + "waiting-cost"
REQUIRED = PREFIX + "topology-required"
PREFERRED = PREFIX + "topology-preferred"
DOMAIN_RESOURCES = PREFIX + "domain-resources"
PARALLELISM = PREFIX + "parallelism"
SPEEDUP = PREFIX + "speedup"
PROMISE = PREFIX + "promise"  # written by Muster: what a new leader must know
STOPPED = PREFIX + "stopped"  # written by Muster: why it stopped the owner, which it alone resumes
REPLICAS = PREFIX + "replicas"  # written by Muster: the size to resume a scaled-down owner with

KNOWN = frozenset(
    {GANG, MIN, MAX, QUEUE, WALLTIME, DEADLINE, WAITING_COST, REQUIRED, PREFERRED}
    | {DOMAIN_RESOURCES, PARALLELISM, SPEEDUP, PROMISE, STOPPED, REPLICAS}
)
ALIASES = {
    "kueue.x-k8s.io/podset-required-topology": REQUIRED,
    "kai.scheduler/topology-required-placement": REQUIRED,
    "kueue.x-k8s.io/podset-preferred-topology": PREFERRED,
    "kai.scheduler/topology-preferred-placement": PREFERRED,
    "kai.scheduler/batch-min-member": MIN,
}
"""The same wish in the words of others; ours win where both are said."""

_LABEL_KEY = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_./]*")


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was asked for; None or empty where nothing was."""

    gang: bool | None = None
    min: int | None = None
    max: int | None = None
    queue: str = ""
    walltime: float | None = None
    deadline: float | None = None
    waiting_cost: float = 0.0
    required: str = ""
    preferred: str = ""
    domain_resources: tuple[tuple[str, int], ...] = ()
    parallelism: Parallelism | None = None
    speedup: tuple[tuple[int, float], ...] = ()
    promise: Reservation | None = None
    stopped: str = ""


def wishes(where: str, annotations: Mapping[str, str]) -> tuple[Wishes, tuple[Problem, ...]]:
    """Read the annotations of one gang; a value that cannot be read is left out and told."""
    values = Values(where, annotations)
    found = Wishes(
        gang=values.read(GANG, flag),
        min=values.read(MIN, count),
        max=values.read(MAX, count),
        queue=annotations.get(QUEUE, ""),
        walltime=values.read(WALLTIME, duration),
        deadline=values.read(DEADLINE, moment),
        waiting_cost=values.read(WAITING_COST, rate) or 0.0,
        required=values.read(REQUIRED, _level) or "",
        preferred=values.read(PREFERRED, _level) or "",
        domain_resources=values.read(DOMAIN_RESOURCES, amounts) or (),
        parallelism=values.read(PARALLELISM, parallelism),
        speedup=values.read(SPEEDUP, curve) or (),
        promise=values.read(PROMISE, read_promise),
        stopped=annotations.get(STOPPED, ""),
    )
    return found, (*values.problems, *_unknown(where, annotations))


def merged(layers: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Our annotations of several objects, the weakest object first."""
    found: dict[str, str] = {}
    borrowed: dict[str, str] = {}
    for layer in layers:
        for key, text in layer.items():
            if key.startswith(PREFIX):
                found[key] = text
            elif key in ALIASES:
                borrowed[ALIASES[key]] = text
    return {**borrowed, **found}


def read_promise(text: str) -> Reservation:
    """The reservation as `write_promise` put it down."""
    tree = decoded(text)
    try:
        return Reservation(
            at=float(tree["at"]),
            domain=str(tree.get("domain", "")),
            count=int(tree.get("count", 0)),
            firm=bool(tree.get("firm", True)),
            since=float(tree.get("since", 0.0)),
        )
    except (TypeError, KeyError, ValueError, AttributeError, OverflowError) as error:
        raise ValueReadError("remove it: Muster writes a new one") from error


def _level(text: str) -> str:
    if not _LABEL_KEY.fullmatch(text):
        raise ValueReadError("write a node label key such as topology.kubernetes.io/rack")
    return text


def _unknown(where: str, annotations: Mapping[str, str]) -> Iterable[Problem]:
    for key in sorted(annotations):
        if key.startswith(PREFIX) and key not in KNOWN:
            known = ", ".join(sorted(name.removeprefix(PREFIX) for name in KNOWN))
            yield Problem(key, f"{where} has an annotation Muster does not know; there are {known}")
