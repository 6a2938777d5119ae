"""Server-side apply: a manager says what it wants of an object and owns exactly that."""

from __future__ import annotations

from typing import Any

from muster.local.api import fieldsets, ownership
from muster.local.api.cluster import Cluster
from muster.local.api.decoding import conformed
from muster.local.api.errors import ApiError, bad_request, invalid, required
from muster.local.api.fieldsets import Fields, Shape
from muster.local.api.options import Options
from muster.local.api.ownership import APPLY, BEFORE, UPDATE, Owner, Ownership
from muster.local.api.preparing import now
from muster.local.api.requests import Target

Object = dict[str, Any]


def apply(cluster: Cluster, target: Target, body: Any, options: Options, named: bool) -> tuple[Object, bool]:
    """Apply a configuration; the object, and whether it was made by this."""
    if not named:
        fault = required("fieldManager", "is required for apply patch")
        raise invalid("meta.k8s.io", "PatchOptions", "", [fault])
    config = conformed(cluster, target.resource, body, options)
    meta = config["metadata"]
    if meta.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    if meta.setdefault("name", target.name) != target.name:
        raise bad_request(f"the name of the object ({meta['name']}) does not match the name on the URL ({target.name})")
    shape = cluster.shape(target.resource)
    wanted = ownership.owned(config, shape)
    part = target.subresource if target.subresource == "status" else ""
    mine = Owner(options.manager, APPLY, config["apiVersion"], part)
    try:
        record = cluster.record(target.resource, target.namespace, target.name)
    except ApiError:
        if part:
            raise
        meta["managedFields"] = ownership.write({mine: (wanted, now())})
        return cluster.create(target.resource, config, target.namespace, options), True
    live = record.obj
    owners = _owners(live, shape)
    _settle(owners, mine, live, config, shape, options.force)
    final = _laid_over(live, config, owners, mine, wanted, shape)
    final["metadata"] = {k: v for k, v in final["metadata"].items() if k != "resourceVersion" or meta.get(k)}
    unchanged = owners.get(mine, (None, ""))[0] == wanted
    owners[mine] = (wanted, owners[mine][1] if unchanged else now())
    final["metadata"]["managedFields"] = ownership.write(owners)
    applied = cluster.replace(target.resource, target.namespace, target.name, final, options, part, tracked=True)
    return applied, False


def _owners(live: Object, shape: Shape) -> Ownership:
    owners = ownership.read(live)
    if not owners:
        version, born = live["apiVersion"], live["metadata"].get("creationTimestamp", "")
        owners[Owner(BEFORE, UPDATE, version)] = (ownership.owned(live, shape), born)
    return owners


def _settle(owners: Ownership, mine: Owner, live: Object, config: Object, shape: Shape, force: bool) -> None:
    """Refuse to take what others own and would change, or take it."""
    found = ownership.conflicts(owners, mine, live, config, shape)
    if found and not force:
        raise ownership.conflict_error(found)
    for owner, fields in found.items():
        kept, time = owners[owner]
        owners[owner] = (kept - fields, time)


def _laid_over(live: Object, config: Object, owners: Ownership, mine: Owner, wanted: Fields, shape: Shape) -> Object:
    """The object with the configuration over it, without what only this manager wanted and wants no more."""
    others = frozenset[fieldsets.Path]().union(*(f for o, (f, _) in owners.items() if o != mine))
    given_up = owners.get(mine, (frozenset[fieldsets.Path](), ""))[0] - wanted - others
    kept = {p[: len(q)] for p in others | wanted for q in given_up if p[: len(q)] == q}
    final: Object = fieldsets.merged(live, config, shape)
    gone = given_up - kept
    if gone:
        final = fieldsets.without(final, gone, shape)
        final.setdefault("metadata", dict(live["metadata"]))
    return final
