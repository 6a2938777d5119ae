"""Koordinator's gangs without an object: annotations, and the older labels with a name and a minimum.

`gang.scheduling.koordinator.sh/*` annotations stand on pods, or on a PodGroup to add to it. The labels
`pod-group.scheduling.sigs.k8s.io/name` and `/min-available` are the form that came before. ACK writes
groups and match policy under the older prefix, as label or annotation; a JSON array cannot be a label
value, so both places are read. The first pod (by creation) with a legal minimum decides for the gang, as
there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from muster.dialects.cluster import Cluster, Key
from muster.dialects.limits import queue_in
from muster.dialects.spelling import Spelling, unreported
from muster.dialects.terms import Match, Problem, Terms
from muster.dialects.values import Values, count, duration, names, one_of
from muster.objects.owners import ObjectMeta
from muster.objects.pods import Pod

PREFIX = "gang.scheduling.koordinator.sh/"
OLD = "pod-group.scheduling.sigs.k8s.io/"
NAME, MIN, TOTAL, MODE = (PREFIX + word for word in ("name", "min-available", "total-number", "mode"))
MATCH, WAIT, GROUPS = (PREFIX + word for word in ("match-policy", "waiting-time", "groups"))
OLD_NAME, OLD_MIN, OLD_MATCH, OLD_GROUPS = (OLD + word for word in ("name", "min-available", "match-policy", "groups"))
POLICIES = ("once-satisfied", "only-waiting", "waiting-and-running", "waiting-running-succeed")


def claim(pod: Pod) -> str | None:
    """The gang by label, else by annotation."""
    return pod.metadata.labels.get(OLD_NAME) or pod.metadata.annotations.get(NAME) or None


def terms(key: Key, pods: Sequence[Pod], _cluster: Cluster) -> Terms:
    """Everything from the pods: the eldest with a legal minimum speaks for all."""
    problems: list[Problem] = []
    for pod in sorted(pods, key=lambda each: (each.metadata.creation_timestamp, each.metadata.name)):
        minimum, found = _minimum(pod)
        problems += found
        if minimum is not None:
            base = Terms(key.name, key.namespace, minimum=minimum, queue=_queue(pod))
            return annotated_terms(replace(base, problems=tuple(problems)), pod.metadata)
    message = f"no pod of gang {key.name} says a legal minimum; add it to the pods as a number"
    problem = Problem(MIN, message, fatal=True)
    return Terms(key.name, key.namespace, problems=(*problems, problem))


def annotated_terms(base: Terms, meta: ObjectMeta) -> Terms:
    """Mode, match policy, waiting time and groups, with Koordinator's defaults for what cannot be read."""
    texts = _either(meta)
    values = Values(f"{base.namespace}/{meta.name}", texts)
    mode = values.read(MODE, one_of("Strict", "NonStrict")) or "Strict"
    policy = values.read(MATCH, one_of(*POLICIES)) or "once-satisfied"
    wait = values.read(WAIT, duration)
    total = values.read(TOTAL, count)
    problems = [*base.problems, *values.problems]
    if total is not None and base.minimum is not None and total < base.minimum:
        problems.append(Problem(TOTAL, f"{total} is below the minimum {base.minimum}; the minimum is taken"))
    named = (Values(values.where, texts, problems).read(GROUPS, names)) or ()
    group, size = _group(base, named, problems)
    match: Match = policy  # type: ignore[assignment]
    return replace(
        base,
        strict=mode == "Strict",
        match=match,
        timeout=wait if wait is not None else base.timeout,
        group=group,
        group_size=size,
        problems=tuple(problems),
    )


def _group(base: Terms, named: Iterable[str], problems: list[Problem]) -> tuple[str, int]:
    """Gangs of one group name each other; the sorted names are the group's own. A missing self is refused."""
    gangs = sorted(set(named))
    if not gangs:
        return "", 1
    own = f"{base.namespace}/{base.name}"
    bad = [each for each in gangs if each.count("/") != 1]
    if bad:
        problems.append(Problem(GROUPS, f"'{bad[0]}' is not NAMESPACE/GANG; correct it, it is read as [self]"))
        return "", 1
    if own not in gangs:
        problems.append(Problem(GROUPS, f"the list lacks {own} itself; add it", fatal=True))
        return "", 1
    return (",".join(gangs), len(gangs)) if len(gangs) > 1 else ("", 1)


def _minimum(pod: Pod) -> tuple[int | None, list[Problem]]:
    meta, where = pod.metadata, f"pod {pod.metadata.name}"
    labels, annotations = Values(where, meta.labels), Values(where, meta.annotations)
    minimum = labels.read(OLD_MIN, count)
    if minimum is None:
        minimum = annotations.read(MIN, count)
    return minimum, [*labels.problems, *annotations.problems]


def _either(meta: ObjectMeta) -> Mapping[str, str]:
    """Today's annotation, else its alias as annotation, else as label."""
    found = dict(meta.annotations)
    for key, alias in ((MATCH, OLD_MATCH), (GROUPS, OLD_GROUPS)):
        text = meta.annotations.get(alias) or meta.labels.get(alias)
        if key not in found and text:
            found[key] = text
    return found


def _queue(pod: Pod) -> str:
    return queue_in(pod.metadata.labels, pod.metadata.annotations)


SPELLING = Spelling(name="koordinator", claim=claim, terms=terms, report=unreported)
