"""What every owner of pods has: the members it will create, and its verbs (stop, resume, resize).

Deleting the pods of an owner makes it count failures and create them again, so a gang is stopped by telling
its owner. Muster leaves a mark on what it stopped, and resumes nothing else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from muster.dialects.cluster import Cluster, Item, Ref
from muster.dialects.spelling import Served
from muster.dialects.terms import Expected, Match, Problem
from muster.dialects.verbs import Verb, annotated, patch
from muster.dialects.wishes import GANG, MIN, STOPPED
from muster.objects.decode import Decoded
from muster.objects.pods import Pod


class StatusCondition(Decoded, frozen=True):
    """A condition, as far as it tells that an owner has finished."""

    type: str = ""
    status: str = ""


@dataclass(frozen=True, slots=True)
class OwnerSays:
    """An owner in our words."""

    expected: tuple[Expected, ...] = ()
    gang: bool = True  # whether its pods belong together; otherwise each is a task of its own
    minimum: int | None = None
    match: Match = "waiting-running-succeed"
    tail: bool = False  # less work is left than members were asked for
    suspended: bool = False
    finished: bool = False
    limit: float | None = None
    timeout: float | None = None
    queue: str = ""
    required_topology: str = ""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnerKind:
    """One kind of owner. `resize` sets the number of members of the largest role; None: it cannot be."""

    name: str
    served: Served
    read: Callable[[Any, Cluster], OwnerSays]
    stop: Callable[[Any, Ref, str], tuple[Verb, ...]] | None = None  # None: its pods are evicted
    resume: Callable[[Any, Ref], tuple[Verb, ...]] | None = None
    resize: Callable[[Any, Ref, int], tuple[Verb, ...]] | None = None


def suspending(
    served: Served, *path: str
) -> tuple[Callable[[Any, Ref, str], tuple[Verb, ...]], Callable[[Any, Ref], tuple[Verb, ...]]]:
    """Stop and resume for owners with a suspend field at this path below spec."""

    def body(value: bool) -> dict[str, Any]:
        tree: Any = value
        for name in reversed(path):
            tree = {name: tree}
        return dict(tree)

    def stop(_owner: Any, ref: Ref, why: str) -> tuple[Verb, ...]:
        return (patch(served.resource, ref, annotated(body(True), {STOPPED: why})),)

    def resume(_owner: Any, ref: Ref) -> tuple[Verb, ...]:
        return (patch(served.resource, ref, annotated(body(False), {STOPPED: None})),)

    return stop, resume


def said_gang(*annotations: Mapping[str, str]) -> bool | None:
    """Whether the user said that the pods belong together; None where nothing was said."""
    for each in annotations:
        if each.get(GANG) in {"true", "false"}:
            return each[GANG] == "true"
    return True if any(MIN in each for each in annotations) else None


def template_of(template: Pod, owner: Item) -> Pod:
    """The template as a pod in its owner's namespace."""
    meta = msgspec.structs.replace(template.metadata, namespace=owner.metadata.namespace)
    return msgspec.structs.replace(template, metadata=meta)


def has_condition(conditions: list[StatusCondition], *types: str) -> bool:
    """Whether one of the conditions holds."""
    return any(each.type in types and each.status == "True" for each in conditions)
