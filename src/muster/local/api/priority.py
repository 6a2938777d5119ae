"""Priority admission: a pod's class becomes its number, and nobody may write the number himself."""

from __future__ import annotations

from typing import Any

from muster.local.api.errors import forbidden
from muster.local.store import Store

Object = dict[str, Any]

_CLASSES = "scheduling.k8s.io/priorityclasses"
SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def admit_pod(store: Store, pod: Object) -> None:
    """Resolve spec.priorityClassName into priority and preemption policy."""
    name = pod["metadata"].get("name", "")
    _resolve(store, pod["spec"], "pods", "", name)


def admit_group(store: Store, group: Object, plural: str) -> None:
    """The same for a native pod group."""
    _resolve(store, group["spec"], plural, "scheduling.k8s.io", group["metadata"].get("name", ""))
    group["spec"].pop("preemptionPolicy", None)


def _resolve(store: Store, spec: Object, plural: str, group: str, name: str) -> None:
    wanted = spec.get("priorityClassName", "")
    found = _named(store, wanted) if wanted else _default(store)
    if wanted and found is None:
        raise forbidden(plural, group, name, f"no PriorityClass with name {wanted} was found")
    value = found["value"] if found else 0
    if found and not wanted:
        spec["priorityClassName"] = found["metadata"]["name"]
    policy = (found or {}).get("preemptionPolicy", "PreemptLowerPriority")
    given = spec.get("priority")
    if given is not None and given != value:
        words = f"the integer value of priority ({given}) must not be provided in pod spec; priority admission"
        words += f" controller computed {value} from the given PriorityClass name"
        raise forbidden(plural, group, name, words)
    if spec.get("preemptionPolicy") not in (None, policy):
        words = f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod"
        words += f" spec; priority admission controller computed {policy} from the given PriorityClass name"
        raise forbidden(plural, group, name, words)
    spec["priority"] = value
    spec["preemptionPolicy"] = policy


def admit_class(store: Store, new: Object) -> None:
    """At most one class may be the default for the whole cluster."""
    if not new.get("globalDefault"):
        return
    name = new["metadata"].get("name", "")
    for _, record in store.scan(_CLASSES):
        other = record.obj["metadata"]["name"]
        if record.obj.get("globalDefault") and other != name:
            words = f"PriorityClass {other} is already marked as globalDefault"
            raise forbidden("priorityclasses", "scheduling.k8s.io", name, words)


def _named(store: Store, name: str) -> Object | None:
    record = store.get(_CLASSES, "", name)
    return record.obj if record else None


def _default(store: Store) -> Object | None:
    if not store.count(_CLASSES):
        return None
    defaults = [r.obj for _, r in store.scan(_CLASSES) if r.obj.get("globalDefault")]
    return min(defaults, key=lambda c: int(c["value"])) if defaults else None
