"""A small cluster for tests: objects are applied as their controllers would create them, then gangs read."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import yaml

from muster.dialects.cluster import Cluster, Key, Name, Ref, meta_of
from muster.dialects.membership import grouping, key_of, keys_of
from muster.dialects.read import read
from muster.dialects.reading import Reading
from muster.dialects.table import KINDS, OWNER_BY_KIND
from muster.objects.decode import Decoded, from_object
from muster.objects.pods import Pod

Tree = dict[str, Any]

TYPES: dict[tuple[str, str], type[Decoded]] = {(each.resource.group, each.resource.kind): each.type for each in KINDS}
START = 1_800_000_000
CREATED = "2027-01-15T08:00:%02dZ"


def merge(base: Any, patch: Any) -> Any:
    """RFC 7386, as the API server merges."""
    if not isinstance(patch, dict):
        return patch
    found = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merge(found.get(key), value)
    return found


class Scene:
    """Objects by identity, and the index a watcher would keep."""

    def __init__(self, text: str = "") -> None:
        self.trees: dict[tuple[str, str, str, str], Tree] = {}
        self.serial = 0
        if text:
            self.apply(text)

    def apply(self, text: str) -> None:
        """Create or merge into objects written in YAML."""
        for tree in yaml.safe_load_all(text):
            self.put(tree)

    def put(self, tree: Tree) -> None:
        group, _, _ = tree["apiVersion"].rpartition("/")
        meta = tree["metadata"]
        clusterwide = tree["kind"] in {"Namespace", "PriorityClass", "PersistentVolume", "StorageClass"}
        namespace = "" if clusterwide else meta.get("namespace", "default")
        key = (group, tree["kind"], namespace, meta["name"])
        if key not in self.trees:
            self.serial += 1
            defaults = {
                "uid": f"uid-{tree['kind'].lower()}-{meta['name']}",
                "namespace": namespace,
                "creationTimestamp": CREATED % min(self.serial, 59),
            }
            self.trees[key] = {**deepcopy(tree), "metadata": {**defaults, **meta}}
        else:
            self.trees[key] = merge(self.trees[key], tree)

    def delete(self, kind: str, name: str) -> None:
        for key in [key for key in self.trees if key[1] == kind and key[3] == name]:
            del self.trees[key]

    def pod(self, name: str, labels: Mapping[str, str] | None = None, **more: Any) -> None:
        """A pod of one CPU; `owner` is (apiVersion, kind, name), the rest goes where it belongs."""
        owner, annotations = more.pop("owner", None), more.pop("annotations", {})
        meta: Tree = {"name": name, "labels": dict(labels or {}), "annotations": annotations}
        if owner is not None:
            meta["ownerReferences"] = [
                {
                    "apiVersion": owner[0],
                    "kind": owner[1],
                    "name": owner[2],
                    "uid": f"uid-{owner[1].lower()}-{owner[2]}",
                    "controller": True,
                }
            ]
        containers = [{"name": "c", "resources": {"requests": more.pop("requests", {"cpu": "1"})}}]
        spec = {"containers": containers, **more}
        self.put({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})

    def bind(self, name: str, node: str = "n1", phase: str = "Pending") -> None:
        """The pod gets a node, and its node agent says so."""
        self.patch("Pod", name, {"spec": {"nodeName": node}, "status": {"phase": phase}})

    def phase(self, name: str, phase: str) -> None:
        self.patch("Pod", name, {"status": {"phase": phase}})

    def patch(self, kind: str, name: str, body: Any) -> None:
        (key,) = [key for key in self.trees if key[1] == kind and key[3] == name]
        self.trees[key] = merge(self.trees[key], body)

    def send(self, verbs: Any) -> None:
        """Carry out merge patches as the API server would."""
        for verb in verbs:
            assert verb.send == "merge", verb
            key = (verb.resource.group, verb.resource.kind, verb.namespace, verb.name)
            self.trees[key] = merge(self.trees[key], verb.body)

    def pods(self) -> list[Pod]:
        return [from_object(tree, Pod) for key, tree in self.trees.items() if key[:2] == ("", "Pod")]

    def cluster(self, *, backwards: bool = False) -> Cluster:
        """The view, with pods and owners indexed by gang."""
        objects: dict[tuple[str, str], dict[tuple[str, str], Decoded]] = {}
        for (group, kind, namespace, name), tree in self.trees.items():
            if (group, kind) in TYPES:
                decoded = from_object(tree, TYPES[group, kind])
                objects.setdefault((group, kind), {})[namespace, name] = decoded
        bare = Cluster(objects=objects)
        grouped: dict[Name, list[Key]] = {}
        for group, kind, namespace, name in self.trees:
            made = grouping(Ref(group, kind, namespace, name), bare)
            if made is not None:
                grouped.setdefault(made[0], []).append(made[1])
        bare.grouped = grouped
        pods: dict[Key, list[Pod]] = {}
        for pod in self.pods()[:: -1 if backwards else 1]:
            pods.setdefault(key_of(pod, bare), []).append(pod)
        owners: dict[Key, list[Ref]] = {}
        for (group, kind), items in objects.items():
            if (group, kind) not in OWNER_BY_KIND:
                continue
            for (namespace, name), item in items.items():
                ref = Ref(group, kind, namespace, name, meta_of(item).uid)
                for gang in keys_of(ref, bare):
                    owners.setdefault(gang, []).append(ref)
        return Cluster(objects=objects, pods=pods, owners=owners, grouped=grouped)

    def gangs(self) -> dict[str, Reading]:
        """Every gang by its key as text."""
        cluster = self.cluster()
        keys = sorted({*cluster.pods, *cluster.owners})
        return {str(key): read(key, cluster) for key in keys}

    def gang(self) -> Reading:
        """The only gang."""
        (found,) = self.gangs().values()
        return found


def sizes(reading: Reading) -> dict[str, tuple[int, int, int]]:
    """Least, most and later of each role."""
    assert reading.gang is not None, (reading.hold, reading.problems)
    return {role.name: (role.min, role.most, role.later) for role in reading.gang.roles}
