"""The bookkeeping of a cache, without a server."""

from hypothesis import given
from hypothesis import strategies as st

from muster.kube.cache import Cache, Change
from muster.kube.watch import Broken, Event, Kind
from muster.objects.owners import ObjectMeta
from muster.objects.pods import Pod


def pod(name: str, version: int, uid: str = "u") -> Pod:
    return Pod(metadata=ObjectMeta(namespace="ns", name=name, uid=uid, resource_version=str(version)))


def heard(cache: Cache[Pod]) -> list[tuple[str, str | None, str | None]]:
    """What handlers are told from now on: kind, old and new version."""
    told: list[tuple[str, str | None, str | None]] = []

    def version(each: Pod | None) -> str | None:
        return each.metadata.resource_version if each else None

    def handler(change: Change[Pod]) -> None:
        told.append((change.kind.value, version(change.old), version(change.new)))

    cache.handlers.append(handler)
    return told


def test_events_become_changes() -> None:
    cache = Cache[Pod]()
    told = heard(cache)
    cache.apply(Event(Kind.ADDED, pod("a", 1)))
    cache.apply(Event(Kind.MODIFIED, pod("a", 2)))
    cache.apply(Event(Kind.DELETED, pod("a", 3)))
    cache.apply(Event(Kind.DELETED, pod("a", 3)))
    assert told == [("ADDED", None, "1"), ("MODIFIED", "1", "2"), ("DELETED", "2", "3")]
    assert cache.objects == {}


def test_the_same_version_twice_is_no_change() -> None:
    cache = Cache[Pod]()
    cache.apply(Event(Kind.ADDED, pod("a", 1)))
    told = heard(cache)
    cache.apply(Event(Kind.ADDED, pod("a", 1)))
    cache.replace([pod("a", 1)])
    assert told == []


def test_a_new_object_under_an_old_name_is_told_as_both() -> None:
    cache = Cache[Pod]()
    cache.apply(Event(Kind.ADDED, pod("a", 1)))
    told = heard(cache)
    cache.apply(Event(Kind.MODIFIED, pod("a", 5, "other")))
    assert told == [("DELETED", "1", None), ("ADDED", None, "5")]


def test_a_list_tells_what_went_before_what_came() -> None:
    cache = Cache[Pod]()
    cache.replace([pod("gone", 1), pod("same", 1), pod("changed", 1)])
    assert cache.synced.is_set()
    told = heard(cache)
    cache.replace([pod("new", 9), pod("changed", 8), pod("same", 1)])
    assert told[0] == ("DELETED", "1", None)
    assert sorted(told[1:]) == [("ADDED", None, "9"), ("MODIFIED", "1", "8")]
    assert cache.get("ns", "new") is not None
    assert cache.get("ns", "gone") is None


def test_an_object_that_no_longer_decodes_leaves_and_is_remembered_as_broken() -> None:
    cache = Cache[Pod]()
    cache.apply(Event(Kind.ADDED, pod("a", 1)))
    told = heard(cache)
    meta = pod("a", 2).metadata
    cache.apply(Broken(Kind.MODIFIED, meta, "wrong"))
    assert told == [("DELETED", "1", None)]
    assert cache.broken == {("ns", "a"): "wrong"}
    cache.apply(Event(Kind.MODIFIED, pod("a", 3)))
    assert cache.broken == {}
    cache.apply(Broken(Kind.MODIFIED, meta, "wrong"))
    cache.apply(Broken(Kind.DELETED, meta, "wrong"))
    assert cache.broken == {}


STATES = st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 3), max_size=4), max_size=6)


@given(STATES)
def test_replaying_the_changes_gives_the_cache(states: list[dict[str, int]]) -> None:
    cache = Cache[Pod]()
    mirror: dict[str, Pod] = {}

    def handler(change: Change[Pod]) -> None:
        if change.kind is Kind.ADDED:
            assert change.old is None
            assert change.new is not None
            assert change.new.metadata.name not in mirror
        else:
            assert change.old is not None
            assert mirror.pop(change.old.metadata.name) is change.old
        if change.kind is not Kind.DELETED and change.new is not None:
            mirror[change.new.metadata.name] = change.new

    cache.handlers.append(handler)
    for version, state in enumerate(states):
        cache.replace(pod(name, version * 10 + uid, f"u{uid}") for name, uid in state.items())
        assert {key[1]: each for key, each in cache.objects.items()} == mirror
        assert mirror.keys() == state.keys()
