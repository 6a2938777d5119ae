"""Pods and what owners will still create, gathered into roles: identical members are one role.

Members of one role ask for the same and obey the same rules, whatever template they came from; the brain
decides for all of them at once. A member that does not exist yet takes the shape of its living siblings,
since admission may have changed them, and only without any that of its owner's template.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from muster.dialects.cluster import Cluster
from muster.dialects.ranks import rank_of, role_of
from muster.dialects.reading import COUNTED, HOLDING, State
from muster.dialects.rules import rules_of
from muster.dialects.terms import Expected
from muster.model.resources import Resources
from muster.model.rules import Rules
from muster.objects.owners import controller_of
from muster.objects.pods import Pod
from muster.objects.requests import pod_footprint


@dataclass(frozen=True, slots=True)
class Shape:
    """What makes members alike."""

    request: Resources
    rules: Rules


@dataclass(slots=True)
class Part:
    """One role in the making: its pods by state, and how many are still to be created."""

    name: str
    shape: Shape
    pods: list[Pod] = field(default_factory=list)
    absent: int = 0
    later: bool = False
    gone: int = 0  # finished members whose pods were cleaned up
    most: int = 0  # what the owner can be resized to
    labels: Mapping[str, str] = field(default_factory=dict)

    tally: dict[State, int] = field(default_factory=dict)

    def add(self, pod: Pod) -> None:
        """One more pod of this shape."""
        state = state_of(pod)
        self.pods.append(pod)
        self.tally[state] = self.tally.get(state, 0) + 1

    def count(self, states: AbstractSet[State]) -> int:
        """Members in any of these states."""
        gone = self.gone if "succeeded" in states else 0
        return sum(self.tally.get(state, 0) for state in states) + gone

    @property
    def size(self) -> int:
        """Members that exist and count, or will."""
        return self.count(COUNTED) + self.absent


def state_of(pod: Pod) -> State:
    """Where a pod stands. A pod being deleted counts for nothing, and holds its node until it is gone."""
    match pod.status.phase:
        case "Succeeded":
            return "succeeded"
        case "Failed":
            return "failed"
    if pod.is_terminating:
        return "ending"
    if pod.spec.node_name:
        return "running" if pod.status.phase == "Running" else "bound"
    return "gated" if pod.is_gated else "waiting"


def parts_of(
    pods: Sequence[Pod], expected: Sequence[Expected], cluster: Cluster, *, spread_by_default: bool = False
) -> list[Part]:
    """Roles in the order of the owners' specs, then by name; pods within one in rank order."""
    shapes = _Shapes(cluster, spread_by_default)
    parts: dict[tuple[str, int], Part] = {}
    for pod in sorted(pods, key=lambda each: (role_of(each), rank_of(each), each.metadata.uid)):
        if state_of(pod) == "failed":
            continue  # what replaces it is a pod of its own
        number, shape = shapes.of(pod)
        part = parts.setdefault((role_of(pod), number), Part(role_of(pod), shape))
        part.add(pod)
    found = list(parts.values())
    for each in expected:
        _add_expected(found, each, shapes, alone=sum(other.role == each.role for other in expected) == 1)
    order = {each.role: number for number, each in reversed(list(enumerate(expected)))}
    found.sort(key=lambda part: (order.get(part.name, len(order)), part.name))
    for part in found:
        part.labels = _common_labels(part.pods) if part.pods else part.labels
    _rename(found)
    return found


def _add_expected(parts: list[Part], expected: Expected, shapes: "_Shapes", alone: bool) -> None:
    """What an owner will still make joins its living members; `alone`: no other owner has this role."""
    same = [part for part in parts if part.name == expected.role]
    own = [part for part in same if alone or any(_made_by(pod, expected) for pod in part.pods)]
    template = None
    if not own:
        template = shapes.of(expected.template)[1]
        own = [part for part in same if part.shape == template and not part.pods]
    if not own and template is not None:
        own = [Part(expected.role, template, labels=expected.template.metadata.labels)]
        parts += own
    pods = [pod for part in own for pod in part.pods if alone or _made_by(pod, expected)]
    seen = sum(state_of(pod) in COUNTED for pod in pods)
    finished = sum(state_of(pod) == "succeeded" for pod in pods)
    gone = max(expected.done - finished, 0)
    largest = max(own, key=lambda part: part.size)
    largest.absent += max(expected.count - expected.lost - seen - gone, 0)
    largest.gone += gone
    largest.most += max(expected.most - expected.lost, 0)
    for part in own:
        part.later = expected.later


def _made_by(pod: Pod, expected: Expected) -> bool:
    owner = controller_of(pod.metadata)
    return owner is not None and expected.owner is not None and owner.name == expected.owner.name


class _Shapes:
    """Tells shapes apart; pods of one template are compared by what is written, and compiled once."""

    def __init__(self, cluster: Cluster, spread_by_default: bool) -> None:
        self.cluster = cluster
        self.spread_by_default = spread_by_default
        self.written: list[tuple[tuple[object, ...], int]] = []
        self.shapes: list[Shape] = []

    def of(self, pod: Pod) -> tuple[int, Shape]:
        written = _written(pod, self.spread_by_default)
        for known, number in self.written:
            if known == written:
                return number, self.shapes[number]
        rules = rules_of(pod, self.cluster, spread_by_default=self.spread_by_default)
        shape = Shape(pod_footprint(pod), rules)
        number = next((i for i, each in enumerate(self.shapes) if each == shape), len(self.shapes))
        if number == len(self.shapes):
            self.shapes.append(shape)
        self.written.append((written, number))
        return number, self.shapes[number]


def _written(pod: Pod, spread_by_default: bool) -> tuple[object, ...]:
    """All that decides the shape, as written."""
    spec, labels = pod.spec, pod.metadata.labels
    claims = [each for each in spec.volumes if each.persistent_volume_claim is not None or each.ephemeral is not None]
    return (
        [(each.resources, each.ports, each.restart_policy) for each in spec.containers],
        [(each.resources, each.ports, each.restart_policy) for each in spec.init_containers],
        (spec.overhead, spec.resources, spec.node_selector, spec.affinity, spec.tolerations),
        (spec.topology_spread_constraints, spec.host_network, claims, pod.metadata.name if claims else ""),
        [(each.allocated_resources, each.resources) for each in pod.status.container_statuses],
        (pod.status.resources, pod.status.allocated_resources),
        labels if spread_by_default or _uses_own_labels(pod) else None,
        [labels.get(key) for key in ("alibabacloud.com/compute-class", "alibabacloud.com/gpu-model-series")],
    )


def _uses_own_labels(pod: Pod) -> bool:
    """Whether a rule takes values from the pod's own labels, which then tell it from its siblings."""
    affinity, spread = pod.spec.affinity, pod.spec.topology_spread_constraints
    terms = []
    if affinity is not None:
        for each in (affinity.pod_affinity, affinity.pod_anti_affinity):
            if each is not None:
                terms += each.required_during_scheduling_ignored_during_execution
                preferred = each.preferred_during_scheduling_ignored_during_execution
                terms += [weighted.pod_affinity_term for weighted in preferred]
    return any(term.match_label_keys or term.mismatch_label_keys for term in terms) or any(
        constraint.match_label_keys for constraint in spread
    )


def _common_labels(pods: Sequence[Pod]) -> dict[str, str]:
    """What selectors can rely on for every member."""
    first, *rest = (pod.metadata.labels for pod in pods)
    return {key: text for key, text in first.items() if all(each.get(key) == text for each in rest)}


def _rename(parts: Sequence[Part]) -> None:
    """Two shapes of one role name are two roles, so the second needs a name of its own."""
    seen: dict[str, int] = {}
    for part in parts:
        seen[part.name] = number = seen.get(part.name, 0) + 1
        if number > 1:
            part.name = f"{part.name}-{number}"


def quorum(parts: Sequence[Part], minimum: int, role_minimum: Mapping[str, int]) -> list[int]:
    """How many of each role start the gang: any members will do, those on nodes and those done first of all.

    Then the oldest that wait, then those still to come. `role_minimum` sets the share of the roles it names.
    """
    sizes = [part.size for part in parts]
    shares = [0] * len(parts)
    left = max(minimum, 0)
    for number, part in enumerate(parts):
        if part.name in role_minimum:
            shares[number] = min(role_minimum[part.name], sizes[number])
            left -= shares[number]
    free = [part.name not in role_minimum for part in parts]
    for number in _preferred(parts):
        if left <= 0:
            break
        if free[number] and shares[number] < sizes[number]:
            shares[number] += 1
            left -= 1
    return shares


def _preferred(parts: Sequence[Part]) -> list[int]:
    """Role numbers, one per member, in the order in which members are chosen for the quorum."""
    done: list[int] = []
    candidates: list[tuple[int, str, str, int]] = []
    for number, part in enumerate(parts):
        done += [number] * part.count(HOLDING | {"succeeded"})
        for pod in part.pods:
            if state_of(pod) in {"waiting", "gated"}:
                gated = int(state_of(pod) == "gated")
                candidates.append((gated, pod.metadata.creation_timestamp, pod.metadata.name, number))
    chosen = done + [number for *_, number in sorted(candidates)]
    for number, part in enumerate(parts):
        chosen += [number] * part.absent
    return chosen
