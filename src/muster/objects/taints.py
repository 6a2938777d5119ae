"""Taints keep pods off nodes; tolerations let them on again.

NoSchedule and NoExecute forbid placing a pod, PreferNoSchedule is a wish. A cordoned node counts as tainted
`node.kubernetes.io/unschedulable:NoSchedule`, whether or not the taint has reached it yet.
"""

import re
from collections.abc import Iterable, Sequence

from muster.objects.decode import Decoded
from muster.objects.selectors import integer

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"

_FORBIDDING = frozenset({"NoSchedule", "NoExecute"})
_PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]*")


class Taint(Decoded, frozen=True):
    """A mark on a node that repels pods."""

    key: str
    value: str = ""
    effect: str = ""


class Toleration(Decoded, frozen=True):
    """What a pod puts up with. An empty key with operator Exists covers all; so does an empty effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Whether this toleration covers the taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "" | "Equal":
                return self.value == taint.value
            case "Exists":
                return True
            case "Lt" | "Gt":
                return _compares(self.operator, taint.value, self.value)
        return False


def forbids(taint: Taint) -> bool:
    """Whether the taint keeps pods off, rather than asking them to stay away."""
    return taint.effect in _FORBIDDING


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether any of the tolerations covers the taint."""
    return any(each.tolerates(taint) for each in tolerations)


def first_untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The taint that keeps a pod off a node, if one does."""
    return next((each for each in taints if forbids(each) and not tolerated(each, tolerations)), None)


def untolerated_preferences(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> int:
    """How many PreferNoSchedule taints a placement would go against."""
    return sum(each.effect == "PreferNoSchedule" and not tolerated(each, tolerations) for each in taints)


def with_default_tolerations(tolerations: Sequence[Toleration]) -> list[Toleration]:
    """What admission makes of a pod's tolerations: five minutes of grace on a node that went away.

    Pods read from the API have them; the pod template of an owner that has no pods yet does not.
    """
    grace = [
        Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=300)
        for key in (NOT_READY, UNREACHABLE)
        if not any(each.key in {"", key} and each.effect in {"", "NoExecute"} for each in tolerations)
    ]
    return [*tolerations, *grace]


def _compares(operator: str, taint_value: str, limit: str) -> bool:
    left, right = _plain_integer(taint_value), _plain_integer(limit)
    if left is None or right is None:
        return False
    return left < right if operator == "Lt" else left > right


def _plain_integer(text: str) -> int | None:
    """Stricter than labels: no plus sign and no leading zeros."""
    return integer(text) if _PLAIN_INTEGER.fullmatch(text) else None
