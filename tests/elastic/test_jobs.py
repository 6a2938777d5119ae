"""Real processes over gloo: every one of them is hurt in turn, and training goes on as promised."""

import functools
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.elastic.jobs import Job, job

# Whole jobs of four workers on two cores: how long one takes depends on what else runs, too much for every day.
pytestmark = [pytest.mark.xdist_group("elastic-jobs"), pytest.mark.chaos]

FOUR = ("--workers", "4", "--silence", "3")


def all_once(running: Job, samples: int, passes: int = 1) -> None:
    used = running.samples()
    assert len(used) == samples, f"{samples - len(used)} samples were lost"
    assert set(used.values()) == {passes}


def changes(running: Job, what: Callable[[], object]) -> None:
    """Do something, wait for the next epoch's first steps, then for the full size."""
    before = max(n["epoch"] for n in running.steps())
    what()
    running.wait(lambda: any(n["epoch"] > before for n in running.steps()))
    running.reaches(4)


def kill_worker(running: Job, rank: int, number: int = signal.SIGKILL) -> None:
    changes(running, lambda: os.kill(running.worker(rank), number))


def kill_agent(running: Job, rank: int) -> None:
    changes(running, lambda: os.kill(running.agent(rank), signal.SIGKILL))


def consumed(point: Path) -> bool:
    return not point.exists()


def reference(directory: Path, *script: str) -> Job:
    """The same training on one worker that nobody disturbs."""
    with job(directory, "--workers", "1", script=(*script, "--pause", "0")) as running:
        return running.finish()


@pytest.mark.parametrize("layout", ["plain", "fsdp"])
def test_sizes_change_while_training(tmp_path: Path, layout: str) -> None:
    script = ("--layout", layout, "--samples", "9000")
    with job(tmp_path / "job", *FOUR, script=script) as running:
        running.reaches(4)
        workers = {running.worker(r) for r in range(4)}
        for size in (2, 4, 3, 1, 4):
            assert running.resize(size)["accepted"]
            running.reaches(size)
        assert {running.worker(r) for r in range(4)} == workers, "nobody was restarted"
        running.finish()
        all_once(running, 9000)
        assert running.loss(730, 750) < 0.7 < running.loss(1, 5)


@pytest.mark.parametrize(("layout", "ranks"), [("plain", range(4)), ("fsdp", (0, 2))])
def test_every_worker_and_agent_may_die(tmp_path: Path, layout: str, ranks: Sequence[int]) -> None:
    with job(tmp_path / "job", *FOUR, script=("--layout", layout, "--samples", "24000")) as running:
        running.reaches(4)
        for rank in ranks:
            kill_worker(running, rank)
        kill_agent(running, 0)
        kill_worker(running, 0, signal.SIGSTOP)
        running.finish()
        all_once(running, 24000)


def test_a_frozen_agent_is_left_behind_and_comes_back(tmp_path: Path) -> None:
    with job(tmp_path / "job", *FOUR, script=("--samples", "9000")) as running:
        running.reaches(4)
        agent = running.agent(0)

        def freeze() -> None:
            os.kill(agent, signal.SIGSTOP)
            running.reaches(3)
            os.kill(agent, signal.SIGCONT)

        changes(running, freeze)
        running.finish()
        all_once(running, 9000)


def test_training_goes_on_without_the_authority(tmp_path: Path) -> None:
    with job(tmp_path / "job", *FOUR, script=("--samples", "12000")) as running:
        running.reaches(4)
        old = running.authority()
        os.kill(old, signal.SIGSTOP)
        running.past(20)
        os.kill(old, signal.SIGCONT)
        os.kill(old, signal.SIGKILL)
        running.past(20)
        running.wait(lambda: running.authority() != old)
        kill_worker(running, 0)
        running.finish()
        all_once(running, 12000)


@pytest.mark.parametrize(
    ("layout", "points"), [("plain", ("backward", "optimizer")), ("fsdp", ("optimizer", "sealed", "replicate"))]
)
def test_crash_points(tmp_path: Path, layout: str, points: Sequence[str]) -> None:
    """A process dies in the backward pass, in the optimizer's step, sealing, replicating, voting,
    committing.
    """
    crash = tmp_path / "crash"
    crash.mkdir()
    script = ("--layout", layout, "--samples", "24000")
    with job(tmp_path / "job", *FOUR, script=script, env={"MUSTER_ELASTIC_CRASH": str(crash)}) as running:
        running.reaches(4)
        for point in points:
            changes(running, (crash / point).touch)
        for point in ("ack", "commit") if layout == "fsdp" else ("commit",):
            (crash / point).touch()
            kill_worker(running, 1)
            running.wait(functools.partial(consumed, crash / point))
            running.reaches(4)
        running.finish()
        all_once(running, 24000)


@pytest.mark.parametrize("layout", ["plain", "fsdp"])
def test_a_recovered_run_is_bit_identical(tmp_path: Path, layout: str) -> None:
    """At one size throughout: the standby takes the lost worker's seat before the next step."""
    script = ("--layout", layout, "--samples", "6000")
    with job(tmp_path / "calm", *FOUR, script=(*script, "--pause", "0")) as calm:
        calm.finish()
    with job(tmp_path / "hurt", *FOUR, "--spares", "1", "--max", "4", script=script) as hurt:
        for rank in (2, 0):
            hurt.reaches(4)
            hurt.wait(lambda: hurt.about()["ready"] == 5)
            kill_worker(hurt, rank)
        hurt.finish()
    assert {n["world"] for notes in hurt.history().values() for n in notes} == {4}
    assert hurt.losses().items() <= calm.losses().items()
    assert hurt.weights() == calm.weights()
    all_once(hurt, 6000)


def test_virtual_batches_give_the_same_bits_at_any_size(tmp_path: Path) -> None:
    script = ("--samples", "3600", "--virtual", "6")
    alone = reference(tmp_path / "alone", *script)
    with job(tmp_path / "many", *FOUR, script=script) as many:
        many.reaches(4)
        for size in (3, 2):
            many.resize(size)
            many.reaches(size)
        many.finish()
    assert many.weights() == alone.weights()
    all_once(many, 3600)


def test_ddp_modules_are_wrapped_anew(tmp_path: Path) -> None:
    script = ("--layout", "ddp", "--samples", "9000")
    with job(tmp_path / "job", "--workers", "2", "--silence", "3", script=script) as running:
        running.reaches(2)
        running.resize(1)
        running.reaches(1)
        running.resize(2)
        running.reaches(2)
        running.finish()
        all_once(running, 9000)
    alone = reference(tmp_path / "alone", "--samples", "9000")
    assert running.loss(700, 750) == pytest.approx(alone.loss(700, 750), rel=0.25)


def test_a_stopped_launcher_leaves_in_good_order(tmp_path: Path) -> None:
    """SIGTERM: everything reaches the store, and the next start continues there."""
    store = tmp_path / "store"
    options = ("--workers", "2", "--silence", "3", "--store", str(store), "--durable-every", "100000")
    with job(tmp_path / "first", *options, script=("--samples", "24000")) as first:
        first.reaches(2)
        first.past(30)
        first.process.send_signal(signal.SIGTERM)
        first.process.wait(60)
    assert list(store.glob("step-*")), "what was in memory is durable"
    with job(tmp_path / "second", *options, script=("--samples", "24000")) as second:
        second.finish()
    assert min(second.history()) == max(first.history()) + 1, "no step is done twice"
    used = first.samples() + second.samples()
    assert len(used) == 24000 and set(used.values()) == {1}
