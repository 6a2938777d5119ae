"""What the API holds, indexed by gang: which pods and owners belong to which, and which gangs to look at again.

A pod that was bound a moment ago counts as bound before the watch says so. Pods of other schedulers, and pods on
their way out, belong to no gang that is planned, but what they hold on their nodes is counted.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from muster.control.lines import Lines, line_of
from muster.dialects.cluster import Cluster, Key, Ref, lineage, meta_of
from muster.dialects.cluster import Name as OwnerName
from muster.dialects.membership import grouping, key_of, keys_of
from muster.dialects.read import read
from muster.dialects.reading import Reading
from muster.dialects.table import OWNER_BY_KIND, SPELLED_BY
from muster.dialects.wake import touched
from muster.model.gang import Gang, Role, Running, Seats
from muster.objects.decode import Decoded
from muster.objects.owners import ObjectMeta
from muster.objects.pods import Pod
from muster.objects.requests import pod_footprint

Name = tuple[str, str]
Kind = tuple[str, str]


@dataclass(slots=True)
class World:
    """Fed by changes of the caches; read by the loop."""

    schedulers: frozenset[str]
    objects: dict[Kind, dict[Name, Decoded]] = field(default_factory=lambda: defaultdict(dict))
    members: dict[Key, dict[str, Pod]] = field(default_factory=lambda: defaultdict(dict))
    owners: dict[Key, set[Ref]] = field(default_factory=lambda: defaultdict(set))
    groups: set[Key] = field(default_factory=set)  # gangs that an object stands for
    grouped: dict[OwnerName, set[Key]] = field(default_factory=lambda: defaultdict(set))
    made_for: dict[Key, OwnerName] = field(default_factory=dict)  # `grouped`, the other way round
    pod_lines: Lines[str] = field(default_factory=Lines)  # pods of ours, by UID
    group_lines: Lines[Ref] = field(default_factory=Lines)
    pods: dict[str, Pod] = field(default_factory=dict)  # by UID, as the API tells them
    keys: dict[str, Key] = field(default_factory=dict)  # of pods, by UID
    made: dict[Ref, tuple[Key, ...]] = field(default_factory=dict)  # the gangs an owner makes
    assumed: dict[str, str] = field(default_factory=dict)  # node of a pod whose binding the watch has not told yet
    changed: set[Key] = field(default_factory=set)
    occupants: dict[str, Pod] = field(default_factory=dict)  # hold room, and are in no gang of ours
    moved: set[str] = field(default_factory=set)  # occupants that came or went

    def view(self) -> Cluster:
        return Cluster(self.objects, _Members(self.members), self.owners, self.grouped)

    def read(self, key: Key) -> Reading | None:
        """The gang as it stands, or None if nothing of it is left. A group object alone is something to report on."""
        if not self.members.get(key) and not self.owners.get(key):
            self.members.pop(key, None)
            self.owners.pop(key, None)
            if key not in self.groups:
                return None
        return read(key, self.view())

    # Pods

    def pod(self, old: Pod | None, new: Pod | None) -> None:
        """A pod came, changed or went."""
        pod = new or old
        assert pod is not None
        uid = pod.metadata.uid
        if new is None or (old is not None and old.metadata.uid != new.metadata.uid):
            self._drop(old.metadata.uid if old is not None else uid)
        if new is not None:
            if new.spec.node_name:
                self.assumed.pop(uid, None)
            self.pods[uid] = new
            self._place(new)

    def _drop(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self.assumed.pop(uid, None)
        self.pod_lines.drop(uid)
        self._leave(uid)
        self._occupy(uid, None)

    def _leave(self, uid: str) -> None:
        key = self.keys.pop(uid, None)
        if key is not None:
            self.members[key].pop(uid, None)
            self.changed.add(key)

    def _place(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        ours = pod.spec.scheduler_name in self.schedulers
        self._occupy(uid, pod if pod.holds_node and (not ours or pod.is_terminating) else None)
        key = key_of(pod, self.view()) if ours else None
        if self.keys.get(uid) != key:
            self._leave(uid)
        if key is not None:
            self.pod_lines.put(uid, line_of(pod.metadata, self.view()))
            self.keys[uid] = key
            self.members[key][uid] = self._as_assumed(pod)
            self.changed.add(key)

    def _occupy(self, uid: str, pod: Pod | None) -> None:
        if pod is None:
            if self.occupants.pop(uid, None) is not None:
                self.moved.add(uid)
        elif uid not in self.occupants:
            self.occupants[uid] = pod
            self.moved.add(uid)

    def _as_assumed(self, pod: Pod) -> Pod:
        node = self.assumed.get(pod.metadata.uid)
        if node is None:
            return pod
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))

    def assume(self, uid: str, node: str) -> None:
        """It is on its way there ('': it is not any more). What is read of its gang says so from now on."""
        if node:
            self.assumed[uid] = node
        else:
            self.assumed.pop(uid, None)
        pod, key = self.pods.get(uid), self.keys.get(uid)
        if pod is not None and key is not None:
            self.members[key][uid] = self._as_assumed(pod)
            self.changed.add(key)

    # Everything else

    def object(self, kind: Kind, old: Decoded | None, new: Decoded | None) -> None:
        """An owner, a group object, or something gangs refer to came, changed or went."""
        item = new or old
        assert item is not None
        meta = meta_of(item)
        name = (meta.namespace, meta.name)
        if new is None:
            self.objects[kind].pop(name, None)
        else:
            self.objects[kind][name] = new
        ref = Ref(kind[0], kind[1], meta.namespace, meta.name, meta.uid)
        if kind in OWNER_BY_KIND:
            self._owner(ref, meta, gone=new is None)
        elif kind in SPELLED_BY:
            self._group(ref, gone=new is None)
        elif kind in FOR_ALL:
            self.changed.update(self.members)
        self.changed.update(touched(ref, self.view()))

    def _group(self, ref: Ref, *, gone: bool) -> None:
        """A group object. One that a controller made tells which owner it was made for."""
        key = Key(SPELLED_BY[ref.group, ref.kind], ref.namespace, ref.name)
        if gone:
            self.groups.discard(key)
            self.group_lines.drop(ref)
            self._made_for(key, None)
            return
        self.groups.add(key)
        self.group_lines.put(ref, line_of(self._meta(ref), self.view()))
        found = grouping(ref, self.view())
        self._made_for(key, found[0] if found is not None else None)

    def _made_for(self, key: Key, owner: OwnerName | None) -> None:
        was = self.made_for.pop(key, None)
        if owner is not None:
            self.made_for[key] = owner
        if was == owner:
            return
        if was is not None:
            self.grouped[was].discard(key)
        if owner is not None:
            self.grouped[owner].add(key)
        for name in (was, owner):
            item = self.objects[name[0], name[1]].get((name[2], name[3])) if name is not None else None
            if name is not None and item is not None:
                self._makes(Ref(*name, meta_of(item).uid), gone=False)

    def _meta(self, ref: Ref) -> ObjectMeta:
        return meta_of(self.objects[ref.group, ref.kind][ref.namespace, ref.name])

    def _owner(self, ref: Ref, meta: ObjectMeta, *, gone: bool) -> None:
        """What an owner says decides whether its pods are a gang, what is made above it, and for whom groups are."""
        self._makes(ref, gone=gone)
        for above, item in lineage(meta, self.view()):
            if item is not None:
                self._makes(Ref(*above.full_name, meta_of(item).uid), gone=False)
        for group in self.group_lines.below(ref.full_name):
            self._group(group, gone=False)
        for uid in self.pod_lines.below(ref.full_name):
            self._place(self.pods[uid])

    def _makes(self, ref: Ref, *, gone: bool) -> None:
        keys = () if gone else keys_of(ref, self.view())
        for key in {*self.made.pop(ref, ()), *keys}:
            if key in keys:
                self.owners[key].add(ref)
            else:
                self.owners[key].discard(ref)
            self.changed.add(key)
        if keys:
            self.made[ref] = keys

    def take_changed(self) -> set[Key]:
        changed, self.changed = self.changed, set()
        return changed

    def take_moved(self) -> set[str]:
        moved, self.moved = self.moved, set()
        return moved


FOR_ALL = {("scheduling.k8s.io", "PriorityClass"), ("storage.k8s.io", "StorageClass")}


class _Members(Mapping[Key, Collection[Pod]]):
    """The pods of each gang, without copying them."""

    def __init__(self, members: dict[Key, dict[str, Pod]]) -> None:
        self.members = members

    def __getitem__(self, key: Key) -> Collection[Pod]:
        if key not in self.members:
            raise KeyError(key)
        return self.members[key].values()

    def __iter__(self) -> Iterator[Key]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)


def occupant(pod: Pod) -> Running:
    """What a pod holds that nobody plans: a gang of one without an end in sight."""
    role = Role("occupant", 1, pod_footprint(pod), labels=dict(pod.metadata.labels))
    gang = Gang(f"occupant/{pod.metadata.uid}", (role,), 0.0, pod.metadata.name, pod.metadata.namespace)
    return Running(gang, 0.0, (Seats(0, (pod.spec.node_name,), (1,)),))
