"""The mirror never goes back in time, whichever of the watch and one's own writes comes first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muster.local.api.access import Object
from muster.local.controllers.mirror import Mirror


def pod(version: int, node: str = "", owner: str = "job") -> Object:
    refs = [{"uid": owner}] if owner else []
    metadata = {"name": "p", "namespace": "d", "uid": "u", "resourceVersion": str(version), "ownerReferences": refs}
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}}


@given(st.lists(st.integers(1, 50), min_size=1))
def test_the_newest_version_wins(versions: list[int]) -> None:
    mirror = Mirror()
    for version in versions:
        mirror.seen("pods", pod(version))
    found = mirror.get("pods", "d", "p")
    assert found
    assert found["metadata"]["resourceVersion"] == str(max(versions))
    assert mirror.owned("job", "pods") == [found]
    assert mirror.by_uid("u") == ("pods", found)


def test_indexes_follow_changes() -> None:
    mirror = Mirror()
    mirror.seen("pods", pod(1))
    mirror.seen("pods", pod(2, node="n", owner=""))
    assert mirror.owned("job", "pods") == []
    assert [p["metadata"]["resourceVersion"] for p in mirror.on_node("n")] == ["2"]
    mirror.removed("pods", pod(3))
    assert (mirror.on_node("n"), list(mirror.every("pods")), mirror.by_uid("u")) == ([], [], None)


def test_what_we_removed_does_not_come_back_with_old_news() -> None:
    mirror = Mirror()
    mirror.seen("pods", pod(1))
    mirror.removing("pods", pod(1))
    assert not mirror.seen("pods", pod(2))
    mirror.removed("pods", pod(3))
    assert mirror.get("pods", "d", "p") is None
    assert mirror.seen("pods", {**pod(4), "metadata": {**pod(4)["metadata"], "uid": "another"}})
