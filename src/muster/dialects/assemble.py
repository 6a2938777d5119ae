"""From a dialect's terms and the pods as they are to a gang: roles, quorum, stage, and why it waits.

All dialects meet here, so that a quorum is counted in one way: by members, each once, those on nodes and
those that succeeded first, and nothing remembered but what the API holds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from muster.dialects.checks import contradictions
from muster.dialects.cluster import Cluster, Key, Ref, meta_of
from muster.dialects.limits import longest_run, priority_of
from muster.dialects.reading import HOLDING, Counts, Member, Reading, Stage, State
from muster.dialects.roles import Part, parts_of, quorum, state_of
from muster.dialects.sizes import model_roles
from muster.dialects.terms import Hold, Problem, Terms
from muster.dialects.volumes import waits_for_volume
from muster.dialects.wishes import Wishes, merged, wishes
from muster.model.gang import Gang, Role, Running, Seats
from muster.model.topology import Closeness
from muster.objects.decode import ObjectError
from muster.objects.owners import seconds
from muster.objects.pods import Pod
from muster.objects.selectors import SelectorError

_DONE_NOT_COUNTED = frozenset({"only-waiting", "waiting-and-running"})


@dataclass(slots=True)
class Draft:
    """What is known half-way: the parts, how many of each start the gang, and what was wrong."""

    terms: Terms
    wished: Wishes
    parts: list[Part]
    shares: list[int]
    problems: list[Problem]

    def total(self, *states: State) -> int:
        """Members of all parts in any of these states."""
        wanted = frozenset(states)
        return sum(part.count(wanted) for part in self.parts)

    @property
    def held(self) -> int:
        """Members on nodes."""
        return self.total(*HOLDING)

    @property
    def awaited(self) -> int:
        """Members of the quorum that appear only once others are ready."""
        return sum(part.absent for part in self.parts if part.later)

    @property
    def stopped(self) -> bool:
        """Whether Muster itself stopped the owner, so that it plans the gang from the owner's spec."""
        return self.terms.suspended and bool(self.wished.stopped)

    @property
    def fatal(self) -> bool:
        """Whether some problem forbids planning."""
        return any(each.fatal for each in self.problems)


def assemble(
    key: Key,
    terms: Terms,
    pods: Sequence[Pod],
    owners: Iterable[Ref],
    cluster: Cluster,
    *,
    replica: bool = False,
) -> Reading:
    """Read one gang. The order of the pods does not matter."""
    owners = tuple(sorted(set(owners)))
    draft = _draft(key, terms, pods, owners, cluster, replica)
    counts = _counts(draft, pods)
    stage = _stage(draft)
    hold = _hold(draft, cluster, stage)
    gang = None if stage in {"done", "stopped"} and not draft.stopped else _gang(key, draft, pods, cluster)
    if draft.held:
        running = _running(draft, gang, stage) if gang is not None else None
    else:
        running = None
        gang = None if hold is not None or draft.fatal else gang
    members = _members(draft.parts)
    return Reading(key, terms, gang, running, members, counts, stage, hold, tuple(draft.problems), owners)


def _draft(
    key: Key, terms: Terms, pods: Sequence[Pod], owners: Sequence[Ref], cluster: Cluster, replica: bool
) -> Draft:
    layers = [pod.metadata.annotations for pod in sorted(pods, key=lambda each: each.metadata.uid)]
    layers += [each.template.metadata.annotations for each in terms.expected] if not pods else []
    layers += [meta_of(item).annotations for item in map(cluster.deref, owners) if item is not None]
    wished, unreadable = wishes(f"{key.dialect} {terms.name}", merged([*layers, terms.annotations]))
    alive = [pod for pod in pods if state_of(pod) in {"gated", "waiting", *HOLDING}]
    problems = [*terms.problems, *unreadable, *contradictions(terms, alive, cluster)]
    counted = pods
    if terms.match in _DONE_NOT_COUNTED:
        counted = [pod for pod in pods if state_of(pod) != "succeeded"]
    try:
        parts = parts_of(counted, terms.expected, cluster, spread_by_default=replica)
    except (SelectorError, ObjectError) as error:
        problems.append(Problem("spec", f"{error}; correct the pods of {terms.name}", fatal=True))
        parts = []
    draft = Draft(terms, wished, parts, [], problems)
    draft.shares = _shares(draft)
    return draft


def _shares(draft: Draft) -> list[int]:
    """Per role; what a gang on nodes lacks beyond the members that exist, its largest role lacks."""
    parts, minimum = draft.parts, _minimum(draft)
    shares = quorum(parts, minimum, draft.terms.role_minimum)
    lacking = minimum - sum(shares)
    if parts and draft.held and lacking > 0:
        shares[max(range(len(parts)), key=lambda number: (parts[number].size, -number))] += lacking
    return shares


def _minimum(draft: Draft) -> int:
    """How many members make the quorum now, by the match policy and what has been."""
    terms = draft.terms
    there = draft.held + draft.total("succeeded")
    if terms.loose:
        return max(there, 1)
    minimum = terms.minimum
    if minimum is None:
        whole = sum(part.size for part in draft.parts)
        minimum = whole if draft.wished.min is None else draft.wished.min
    if terms.match == "once-satisfied" and terms.started and draft.held:
        return min(minimum, there)
    if terms.match == "only-waiting" and draft.held:
        fresh = draft.total("waiting")
        return draft.held + (minimum if fresh >= minimum else 0)
    return minimum


def _stage(draft: Draft) -> Stage:
    there = draft.held + draft.total("succeeded")
    if draft.held:
        return "running" if there + draft.awaited >= sum(draft.shares) else "partial"
    if draft.terms.finished:
        return "done"
    if draft.terms.suspended:
        return "stopped"
    nothing_left = not draft.total("waiting", "gated") and not any(part.absent for part in draft.parts)
    done = draft.total("succeeded")
    return "done" if done and nothing_left and done >= _wanted(draft) else "waiting"


def _wanted(draft: Draft) -> int:
    """The quorum as stated, however many members exist."""
    return max(draft.terms.minimum or 0, sum(draft.shares))


def _hold(draft: Draft, cluster: Cluster, stage: Stage) -> Hold | None:
    terms = draft.terms
    if stage == "done" or draft.stopped:
        return None
    if terms.hold is not None:
        return terms.hold
    if terms.suspended:
        return Hold("Suspended", f"{terms.name} is suspended; it is planned once resumed")
    return _members_missing(draft) or waits_for_volume(_waiting_pods(draft), cluster)


def _members_missing(draft: Draft) -> Hold | None:
    terms, gated = draft.terms, draft.total("gated")
    if terms.gates_whole and gated:
        return Hold("Gated", f"{gated} members of {terms.name} have scheduling gates; they hold the gang")
    eligible = draft.held + draft.total("waiting", "succeeded") + draft.awaited
    wanted = _wanted(draft) if not draft.held else sum(draft.shares)
    if terms.match == "only-waiting" and draft.held and 0 < draft.total("waiting") < (terms.minimum or 0):
        wanted = eligible + (terms.minimum or 0) - draft.total("waiting")
    if not draft.parts:
        return Hold("WaitingForMembers", f"no member of {terms.name} exists yet")
    if eligible >= wanted:
        return _nobody_waits(draft)
    if eligible + gated >= wanted:
        return Hold("Gated", f"{terms.name} needs {wanted} members; {gated} of them have scheduling gates")
    return Hold("WaitingForMembers", f"{eligible} of {wanted} members of {terms.name} exist{_short_spec(draft)}")


def _nobody_waits(draft: Draft) -> Hold | None:
    """A quorum that is done, and more members to come, none of which can be placed yet."""
    if draft.held or draft.total("waiting"):
        return None
    if draft.total("gated"):
        return Hold("Gated", f"what is left of {draft.terms.name} has scheduling gates")
    return Hold("WaitingForMembers", f"what is left of {draft.terms.name} does not exist yet")


def _short_spec(draft: Draft) -> str:
    """Where the owners make fewer members than the quorum, waiting alone will not help: say so."""
    expected = draft.terms.expected
    most = sum(each.count for each in expected)
    if not expected or most >= _wanted(draft):
        return ""
    names = sorted({each.owner.name for each in expected if each.owner is not None})
    return f"; {', '.join(names)} makes only {most}: lower the minimum or raise its size"


def _waiting_pods(draft: Draft) -> list[Pod]:
    pods = [pod for part in draft.parts for pod in part.pods if state_of(pod) == "waiting"]
    return sorted(pods, key=lambda pod: pod.metadata.name)


def _gang(key: Key, draft: Draft, pods: Sequence[Pod], cluster: Cluster) -> Gang | None:
    if not draft.parts:
        return None
    terms, wished = draft.terms, draft.wished
    roles = model_roles(draft.parts, draft.shares, wished, draft.problems, stopped=draft.stopped)
    if not draft.held:
        roles = _still_needed(roles, draft.parts)
    elif draft.fatal:
        roles = [_not_growing(role, part) for role, part in zip(roles, draft.parts, strict=True)]
    return Gang(
        uid=terms.uid or str(key),
        roles=tuple(roles),
        submitted=terms.submitted if terms.submitted is not None else _first_created(pods),
        name=terms.name,
        namespace=terms.namespace,
        queue=wished.queue or terms.queue,
        group=terms.group,
        group_size=terms.group_size,
        group_min=terms.group_min,
        priority=priority_of(terms, pods, cluster),
        walltime=longest_run(terms, wished, pods),
        deadline=wished.deadline,
        waiting_cost=wished.waiting_cost,
        closeness=Closeness(
            wished.required or terms.required_topology,
            wished.preferred or terms.preferred_topology,
            wished.domain_resources,
        ),
        promised=wished.promise if not draft.held else None,
    )


def _still_needed(roles: Sequence[Role], parts: Sequence[Part]) -> list[Role]:
    """Of a gang that holds no node: members that succeeded need none. What is left starts with one at least."""
    done = [part.count({"succeeded"}) for part in parts]
    found = [
        replace(role, min=max(role.min - number, 0), max=max(role.most - number, 0)) if number else role
        for role, number in zip(roles, done, strict=True)
    ]
    if not any(role.min for role in found):
        first = next((number for number, part in enumerate(parts) if part.count({"waiting"})), 0)
        found[first] = replace(found[first], min=min(found[first].most, 1))
    return found


def _not_growing(role: Role, part: Part) -> Role:
    return replace(role, max=max(role.min, part.count(HOLDING | {"succeeded"})))


def _running(draft: Draft, gang: Gang, stage: Stage) -> Running:
    started = min(_start(pod) for pod in _holding_pods(draft.parts))
    fresh = [_time(pod.metadata.creation_timestamp) for pod in _waiting_pods(draft)]
    since = None
    if stage == "partial" and fresh:  # while nobody waits yet, nothing tells since when somebody is missing
        since = max([started, *(time for time in fresh if time > started)][:2])
    return Running(
        gang=gang,
        started=started,
        seats=tuple(_seats(draft.parts)),
        succeeded=tuple(part.count({"succeeded"}) for part in draft.parts),
        partial_since=since,
    )


def _seats(parts: Sequence[Part]) -> Iterable[Seats]:
    for number, part in enumerate(parts):
        by_node: dict[str, int] = {}
        for pod in part.pods:
            if state_of(pod) in HOLDING:
                by_node[pod.spec.node_name] = by_node.get(pod.spec.node_name, 0) + 1
        if by_node:
            yield Seats(number, tuple(sorted(by_node)), tuple(by_node[name] for name in sorted(by_node)))


def _holding_pods(parts: Sequence[Part]) -> list[Pod]:
    return [pod for part in parts for pod in part.pods if state_of(pod) in HOLDING]


def _members(parts: Sequence[Part]) -> tuple[Member, ...]:
    return tuple(
        Member(pod.metadata.uid, pod.metadata.name, number, state_of(pod), pod.spec.node_name)
        for number, part in enumerate(parts)
        for pod in part.pods
    )


def _counts(draft: Draft, pods: Sequence[Pod]) -> Counts:
    tally = dict.fromkeys(("gated", "waiting", "bound", "running", "succeeded", "failed", "ending"), 0)
    for pod in pods:
        tally[state_of(pod)] += 1
    del tally["ending"]
    tally["succeeded"] += sum(part.gone for part in draft.parts)
    expected = sum(part.size for part in draft.parts)
    return Counts(expected=expected, minimum=_wanted(draft), **tally)


def _start(pod: Pod) -> float:
    scheduled = next((each for each in pod.status.conditions if each.type == "PodScheduled"), None)
    for text in (pod.status.start_time, scheduled.last_transition_time if scheduled else ""):
        if text:
            return _time(text)
    return _time(pod.metadata.creation_timestamp)


def _first_created(pods: Sequence[Pod]) -> float:
    return min((_time(pod.metadata.creation_timestamp) for pod in pods), default=0.0)


def _time(text: str) -> float:
    try:
        return seconds(text)
    except ObjectError:
        return 0.0
