"""Every second in exactly one bucket."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from muster.elastic.ledger import CELLS, Bucket, Ledger, account, goodput, merged
from muster.elastic.picture import drawn, metrics, report, summarised

gaps = st.floats(0, 30)
events = st.lists(
    st.one_of(
        st.tuples(st.just("switch"), gaps, st.sampled_from(list(Bucket))),
        st.tuples(st.just("step"), gaps, st.floats(0, 40)),
        st.tuples(st.just("rollback"), gaps, st.integers(0, 30)),
        st.tuples(st.just("commit"), gaps, st.integers(0, 30)),
    ),
    max_size=40,
)


@given(st.floats(0, 1e6), events)
def test_buckets_partition_the_time(start: float, history: list[tuple[str, float, Any]]) -> None:
    ledger, now, step = Ledger(start), start, 0
    for kind, gap, value in history:
        now += gap
        if kind == "switch":
            ledger.switch(now, value)
        elif kind == "step":
            step += 1
            ledger.stepped(now, step, value)
        elif kind == "rollback":
            ledger.rollback(value)
            step = min(step, value)
        else:
            ledger.committed(value)
    ledger.until(now)
    assert sum(ledger.totals.values()) == approx(now - start, abs=1e-5)
    assert all(seconds >= -1e-6 for seconds in ledger.totals.values())
    assert len(ledger.cells) <= CELLS + 1
    for bucket in Bucket:
        drawn_seconds = sum(c.get(bucket, 0.0) for c in ledger.cells.values())
        assert drawn_seconds == approx(ledger.totals.get(bucket, 0.0), abs=1e-4)


def test_a_rollback_turns_useful_into_recomputed() -> None:
    ledger = Ledger(0.0)
    for step in range(1, 6):
        ledger.stepped(float(step), step)
    assert ledger.rollback(3) == 2.0
    assert ledger.totals[Bucket.USEFUL] == 3.0
    assert ledger.totals[Bucket.RECOMPUTED] == 2.0
    ledger.committed(3)
    assert ledger.rollback(0) == 0.0, "what is committed cannot be lost"


def test_the_stall_of_a_step_is_not_useful() -> None:
    ledger = Ledger(10.0)
    ledger.stepped(12.0, 1, stall=0.5)
    assert (ledger.totals[Bucket.STALL], ledger.totals[Bucket.USEFUL]) == (0.5, 1.5)


def test_time_in_the_queue_comes_before_the_clock() -> None:
    ledger = Ledger(100.0)
    ledger.queued(40.0)
    ledger.until(110.0)
    assert ledger.total == 50.0
    assert ledger.totals[Bucket.QUEUE] == 40.0


def test_reports_and_pictures_show_the_same_totals() -> None:
    ledger = Ledger(0.0)
    ledger.stepped(3.0, 1)
    ledger.switch(3.0, Bucket.RECONFIGURE)
    ledger.until(4.0)
    accounts = [account(ledger, "gpu<0>", 1000.0), account(ledger, "gpu-1", 1000.0)]
    assert merged(accounts)["useful"] == 6.0
    assert goodput(merged(accounts)) == 0.75
    assert report(accounts)["goodput"] == 0.75
    assert "goodput 75.0%" in summarised(accounts)
    picture = drawn("job & co", accounts)
    assert "gpu&lt;0&gt;" in picture and "job &amp; co" in picture
    about = {"size": 2, "step": 1, "epoch": 1, "last_snapshot": -1}
    assert 'muster_elastic_gpu_seconds{job="j",bucket="useful"} 6.000000' in metrics("j", accounts, about)


def test_an_empty_ledger_has_no_goodput_and_still_a_picture() -> None:
    assert goodput(merged([])) == 0.0
    assert drawn("j", []).startswith("<svg")
