"""What the authority grants, and what it refuses."""

from dataclasses import replace
from pathlib import Path

import pytest

from muster.elastic.authority import Authority, Record, Terms, inherit, summary
from muster.elastic.protocol import Ack, Member, Phase, Refused, Source, Stale, Status, Vote
from muster.elastic.record import Deposed, RecordFile

TERMS = Terms("job", least=1, most=3, silence=5.0, settle=0.5, patience=2.0)


def status(i: int, life: int = 0, **more: object) -> Status:
    base = Status(Member(f"m{i}", f"h:{i}", f"d{i}", life), ready=True)
    return replace(base, **more)  # type: ignore[arg-type]


def acknowledge(a: Authority, now: float, *who: int, vote: Vote | None = None) -> None:
    for i in who:
        assert a.proposal is not None
        a.ack(f"m{i}", Ack(a.proposal.epoch, a.peers[f"m{i}"].status.member.life, vote or Vote()), now)


def running(count: int = 2) -> Authority:
    a = inherit(TERMS, Record(), 0.0)
    for i in range(count):
        a.hear(status(i), 0.0)
    a.step(3.0)
    acknowledge(a, 3.0, *range(count))
    for i in range(count):
        a.hear(status(i, resumed=1, protected=1), 3.0)
    return a


def test_the_start_waits_for_the_full_size_and_not_for_ever() -> None:
    a = inherit(TERMS, Record(), 0.0)
    a.hear(status(0), 0.0)
    a.step(1.0)
    assert a.phase() is Phase.FORMING
    a.step(2.5)
    assert a.phase() is Phase.PREPARE
    acknowledge(a, 2.5, 0)
    assert a.document().restore is not None
    assert a.document().phase is Phase.COMMIT


def test_newcomers_join_together_once_no_more_come() -> None:
    a = running(1)
    a.hear(status(1), 3.1)
    a.step(3.2)
    assert a.phase() is Phase.COMMIT
    a.hear(status(2), 3.3)
    a.step(4.0)
    assert [m.id for m in a.document().members] == ["m0", "m1", "m2"]
    assert a.document().planned


def test_a_replacement_takes_the_seat_of_the_lost_one() -> None:
    a = running(3)
    a.hear(status(3), 3.1)
    a.hear(status(1, ready=False), 3.2)
    assert [m.id for m in a.document().members] == ["m0", "m3", "m2"]
    assert not a.document().planned


def test_a_standby_of_the_same_pod_keeps_the_seat() -> None:
    a = running(2)
    a.hear(status(1, life=1), 3.2)
    assert [(m.id, m.life) for m in a.document().members] == [("m0", 0), ("m1", 1)]


def test_silence_is_loss() -> None:
    a = running(2)
    a.hear(status(0, resumed=1), 8.0)
    a.step(8.5)
    assert [m.id for m in a.document().members] == ["m0"]


def test_stale_messages_are_refused() -> None:
    a = running(2)
    with pytest.raises(Stale, match="not being prepared"):
        a.ack("m0", Ack(1, 0), 4.0)
    a.hear(status(1, life=2), 4.0)
    with pytest.raises(Stale, match="life 1 is over"):
        a.hear(status(1, life=1), 4.1)
    with pytest.raises(Stale, match="life 0"):
        a.ack("m1", Ack(2, 0), 4.1)


def test_a_deadline_that_cannot_be_met_is_refused_with_the_time_needed() -> None:
    a = running(2)
    a.hear(status(0, resumed=1, flush=12.0), 4.0)
    with pytest.raises(Refused, match=r"12\.5 s are needed to get to 0 workers, 5\.0 s were given"):
        a.resize(0, 9.0, 4.0)
    assert a.resize(1, 9.0, 4.0) == 0.5
    assert a.document().phase is Phase.PREPARE


def test_who_leaves_is_let_go_once_all_is_safe_without_it() -> None:
    a = running(2)
    a.hear(status(1, resumed=1, protected=1, leaving=20.0), 4.0)
    acknowledge(a, 4.0, 0, 1, vote=Vote(9, True))
    assert a.document().released == ()
    a.hear(status(0, resumed=2, protected=2), 4.5)
    assert a.document().released == ("m1",)


def test_who_does_not_stop_before_the_deadline_is_left_behind() -> None:
    a = running(2)
    a.hear(status(1, resumed=1, leaving=2.0), 4.0)
    acknowledge(a, 4.0, 0)
    a.hear(status(0, resumed=1), 6.1)
    acknowledge(a, 6.1, 0)
    assert [m.id for m in a.document().members] == ["m0"]
    assert a.document().phase is Phase.COMMIT


def test_below_the_least_the_job_is_suspended_and_resumes() -> None:
    a = inherit(replace(TERMS, least=2), Record(), 0.0)
    for i in range(2):
        a.hear(status(i), 0.0)
    a.step(3.0)
    acknowledge(a, 3.0, 0, 1)
    a.hear(status(1, ready=False), 3.5)
    acknowledge(a, 3.5, 0, 1)
    assert a.phase() is Phase.SUSPENDED
    a.hear(status(1, life=1), 4.0)
    a.step(6.5)
    assert a.phase() is Phase.PREPARE


def test_the_size_is_a_multiple() -> None:
    a = inherit(Terms("job", 2, 4, multiple=2, settle=0.0, patience=0.0), Record(), 0.0)
    for i in range(3):
        a.hear(status(i), 0.0)
    a.step(0.1)
    assert len(a.document().members) == 2
    with pytest.raises(ValueError, match="multiples of 2"):
        Terms("job", 1, 4, multiple=2)
    with pytest.raises(ValueError, match="need 1 <= min"):
        Terms("job", 3, 2)


def test_the_end_comes_when_all_have_finished() -> None:
    a = running(2)
    a.hear(status(0, resumed=1, finished=True), 4.0)
    assert a.phase() is Phase.COMMIT
    a.hear(status(1, resumed=1, finished=True), 4.1)
    assert a.phase() is Phase.DONE


def test_a_new_authority_takes_up_what_was_not_committed() -> None:
    a = running(2)
    a.hear(status(1, ready=False), 4.0)
    b = inherit(TERMS, a.record, 5.0)
    b.hear(status(0, resumed=1), 5.1)
    b.hear(status(1, life=1), 5.2)
    assert b.document().epoch == 3
    assert b.document().term == 2


def test_the_summary_has_what_a_scheduler_weighs() -> None:
    a = running(2)
    a.hear(status(0, resumed=1, step=40, committed=38, flush=2.0), 4.0)
    about = summary(a, {2: 100.0})
    assert about["seconds_to_stop"] == 2.5
    assert about["shrink_order"] == ["m1", "m0"]
    assert about["samples_per_second"] == {"2": 100.0}
    assert a.restore is not None and a.restore.source is Source.STORE


def test_of_two_authorities_one_is_deposed(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "record.json")
    first = inherit(TERMS, file.read(), 0.0).record
    file.swap(Record(), first)
    second = inherit(TERMS, file.read(), 0.0).record
    file.swap(first, second)
    with pytest.raises(Deposed, match="is at term 2, this authority at 1"):
        file.swap(first, replace(first, epoch=9))
    assert file.read() == second


def test_a_damaged_record_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text("{")
    with pytest.raises(Refused, match="remove it to start the job anew"):
        RecordFile(tmp_path / "record.json").read()
