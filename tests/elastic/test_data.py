"""Sources that can only be read in sequence: shards are leased, streams move whole, nothing is lost."""

from collections import Counter
from typing import Any

import pytest

from muster.elastic.data import Data, DataChanged, Shards, Streams, furthest

NAMES = [f"f{i}" for i in range(5)]
SIZES = dict(zip(NAMES, (7, 3, 9, 0, 5), strict=True))


def rows(name: str, offset: int) -> list[str]:
    return [f"{name}:{i}" for i in range(offset, SIZES[name])]


class Loader:
    def __init__(self, number: int) -> None:
        self.number, self.at = number, 0

    def __iter__(self) -> Any:
        while self.at < 4 + self.number:
            self.at += 1
            yield [f"{self.number}:{self.at - 1}"]

    def state_dict(self) -> int:
        return self.at

    def load_state_dict(self, state: int) -> None:
        self.at = state


@pytest.mark.parametrize("history", [(1, 3, 2), (4, 1), (2, 5, 7)])
@pytest.mark.parametrize("make", ["shards", "streams"])
def test_every_sample_once_for_a_history_of_sizes(history: tuple[int, ...], make: str) -> None:
    used: Counter[str] = Counter()
    positions: list[dict[str, Any]] = []
    for turn, world in enumerate([*history, 1]):
        feeds = [source(make) for _ in range(world)]
        for rank, feed in enumerate(feeds):
            if positions:
                feed.seek(positions)
            feed.open(rank, world, 0)
        for step in range(2 if turn < len(history) else 99):
            items = [feed.next() for feed in feeds]
            if not any(i and i.samples for i in items):
                break
            for feed, item in zip(feeds, items, strict=True):
                assert item is not None
                if step == 1 and turn == 0:
                    continue  # read ahead, never committed: it comes again
                used.update(item.batch if item.samples else [])
                feed.commit(item)
            if step == 1 and turn == 0:
                break
        positions = [feed.position() for feed in feeds]
    want = [r for n in NAMES for r in rows(n, 0)]
    if make == "streams":
        want = [f"{n}:{i}" for n in range(3) for i in range(4 + n)]
    assert used == Counter(want)


def source(make: str) -> Shards | Streams:
    if make == "shards":
        return Shards(NAMES, rows, batch=2, collate=list)
    return Streams(Loader, 3)


def test_a_member_without_data_has_something_to_take_part_with() -> None:
    assert Shards(NAMES, rows, 2, collate=list).template() == ["f0:0"]
    assert Streams(Loader, 3).template() == ["0:0"]
    assert Data(range(10), 2, collate=list).template() == [0]


def test_a_dataset_that_shrank_is_refused() -> None:
    data = Data(range(9), 2)
    with pytest.raises(DataChanged, match="has 9 samples, the snapshot was taken with 10"):
        data.seek([{"size": 10, "turn": 0, "at": 4}])
    with pytest.raises(DataChanged, match="list of shards"):
        Shards(["a"], rows, 1).seek([{"names": ["b"], "done": {}}])
    with pytest.raises(DataChanged, match="has 4 streams, this run 3"):
        Streams(Loader, 3).seek([{"count": 4, "states": {}}])


def test_nothing_to_train_on_is_said_at_once() -> None:
    with pytest.raises(ValueError, match="0 samples in batches of 2"):
        Data([], 2)
    with pytest.raises(TypeError, match="map-style"):
        Data(iter([1]), 2)
    with pytest.raises(ValueError, match="map-style"):
        Shards(NAMES, rows, 2).open(0, 1, 4)


def test_prefetching_does_not_move_the_cursor() -> None:
    data = Data(range(10), 3, collate=list)
    data.open(0, 1, 0)
    first = data.next()
    assert first is not None and data.position()["at"] == 0
    data.next()
    data.commit(first)
    assert data.position()["at"] == 3
    data.open(0, 2, 0)
    again = data.next()
    assert again is not None and again.total == 3 and again.samples == 2


def test_a_part_without_samples_borrows_one() -> None:
    data = Data(range(3), 2, collate=list)
    data.open(2, 3, 0)
    item = data.next()
    assert item is not None and item.samples == 0 and len(item.batch) == 1


def test_who_is_furthest_knows_a_shard_best() -> None:
    known = furthest([{"done": {"0": 3, "1": None}}, {"done": {"0": 5, "1": 2}}])
    assert known == {0: 5, 1: None}
