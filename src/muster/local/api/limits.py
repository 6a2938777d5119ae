"""LimitRange admission: fill in a namespace's default requests and limits, refuse what is out of range."""

from __future__ import annotations

from typing import Any

from muster.local.api.errors import forbidden
from muster.local.api.quantities import written
from muster.local.store import Store
from muster.objects.quantity import milli_units

Object = dict[str, Any]


def admit_pod(store: Store, pod: Object, namespace: str) -> None:
    items = _items(store, namespace)
    if not items:
        return
    spec = pod["spec"]
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    for item in items:
        if item.get("type") == "Container":
            for container in containers:
                _fill_in(container, item)
    faults = [fault for item in items for fault in _faults(item, spec, containers)]
    if faults:
        joined = faults[0] if len(faults) == 1 else "[" + ", ".join(faults) + "]"
        raise forbidden("pods", "", pod["metadata"].get("name", ""), joined)


def admit_claim(store: Store, claim: Object, namespace: str) -> None:
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    faults = []
    for item in _items(store, namespace):
        if item.get("type") == "PersistentVolumeClaim":
            faults += _bounds(item, "PersistentVolumeClaim", requests, {}, limits_matter=False)
    if faults:
        joined = faults[0] if len(faults) == 1 else "[" + ", ".join(faults) + "]"
        raise forbidden("persistentvolumeclaims", "", claim["metadata"].get("name", ""), joined)


def _items(store: Store, namespace: str) -> list[Object]:
    if not store.count("limitranges"):
        return []
    return [i for _, r in store.scan("limitranges", namespace) for i in r.obj["spec"].get("limits") or ()]


def _fill_in(container: Object, item: Object) -> None:
    resources = container.setdefault("resources", {})
    for kind, source in (("limits", "default"), ("requests", "defaultRequest")):
        missing = {k: v for k, v in (item.get(source) or {}).items() if k not in (resources.get(kind) or {})}
        if kind == "requests":
            own_limits = resources.get("limits") or {}
            missing = {k: own_limits[k] if _above(v, own_limits.get(k)) else v for k, v in missing.items()}
        if missing:
            resources[kind] = {**(resources.get(kind) or {}), **missing}


def _above(value: str, limit: str | None) -> bool:
    return limit is not None and milli_units(value) > milli_units(limit)


def _faults(item: Object, spec: Object, containers: list[Object]) -> list[str]:
    if item.get("type") == "Container":
        found = []
        for container in containers:
            resources = container.get("resources") or {}
            found += _bounds(item, "Container", resources.get("requests") or {}, resources.get("limits") or {})
        return found
    if item.get("type") == "Pod":
        totals = [_total(spec["containers"], kind) for kind in ("requests", "limits")]
        return _bounds(item, "Pod", *totals)
    return []


def _total(containers: list[Object], kind: str) -> dict[str, str]:
    sums: dict[str, int] = {}
    for container in containers:
        for name, amount in ((container.get("resources") or {}).get(kind) or {}).items():
            sums[name] = sums.get(name, 0) + milli_units(amount)
    return {name: written(total) for name, total in sums.items()}


def _bounds(item: Object, what: str, requests: Object, limits: Object, *, limits_matter: bool = True) -> list[str]:
    faults = []
    for name, low in (item.get("min") or {}).items():
        asked = requests.get(name, limits.get(name))
        if asked is None:
            faults.append(f"minimum {name} usage per {what} is {low}.  No request is specified")
        elif milli_units(asked) < milli_units(low):
            faults.append(f"minimum {name} usage per {what} is {low}, but request is {asked}")
    for name, high in (item.get("max") or {}).items():
        cap = limits.get(name) if limits_matter else requests.get(name)
        word = "limit" if limits_matter else "request"
        if cap is None:
            faults.append(f"maximum {name} usage per {what} is {high}.  No {word} is specified")
        elif milli_units(cap) > milli_units(high):
            faults.append(f"maximum {name} usage per {what} is {high}, but {word} is {cap}")
    return faults
