"""The small parts of a process node: GPUs, logs, container states, loopback slices."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.local.clock import VirtualClock
from muster.local.nodes.process import logs
from muster.local.nodes.process.devices import Devices, variables, wanted
from muster.local.nodes.process.logs import Log
from muster.local.nodes.process.loopback import reserve_network
from muster.local.nodes.process.status import INIT, MAIN, SIDECAR, State, phase


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.booleans())))
def test_no_gpu_has_two_holders(steps: list[tuple[int, int, bool]]) -> None:
    devices, held = Devices(8), dict[str, list[int]]()
    for who, count, give in steps:
        name = str(who)
        if give:
            devices.give(name)
            held.pop(name, None)
        elif name not in held:
            taken = devices.take(name, count)
            free = 8 - sum(map(len, held.values()))
            assert (taken is not None) == (count <= free)
            if taken is not None:
                held[name] = taken
        together = [index for indices in held.values() for index in indices]
        assert len(together) == len(set(together))


def test_gpus_are_told_by_the_usual_variables() -> None:
    assert wanted({"resources": {"limits": {"nvidia.com/gpu": "2"}}}) == 2
    assert variables([1, 3]) == {"CUDA_VISIBLE_DEVICES": "1,3", "NVIDIA_VISIBLE_DEVICES": "1,3"}
    assert variables([]) == {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}


async def read(log: Log, tail: int | None = None) -> bytes:
    return b"".join([line async for line in log.read(tail=tail)])


def test_a_log_that_grows_too_long_loses_its_oldest_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_LARGEST", 1000)
    log = Log(tmp_path / "0.log", VirtualClock())
    for number in range(100):
        log.write([b"line %d" % number])
    kept = asyncio.run(read(log)).splitlines()
    assert kept[-1] == b"line 99"
    assert 20 < len(kept) < 70
    assert [int(line.split()[1]) for line in kept] == list(range(100 - len(kept), 100))
    assert asyncio.run(read(log, tail=2)) == b"line 98\nline 99\n"


def test_output_is_cut_into_lines_and_an_unfinished_one_is_kept(tmp_path: Path) -> None:
    async def story() -> bytes:
        log, reader = Log(tmp_path / "0.log", VirtualClock()), asyncio.StreamReader()
        for chunk in (b"on", b"e\ntwo\nthr", b"ee"):
            reader.feed_data(chunk)
        reader.feed_eof()
        await log.pump(reader)
        return await read(log)

    assert asyncio.run(story()) == b"one\ntwo\nthree\n"


def container(role: str = MAIN, **exits: int) -> State:
    state = State("c", role)
    if "runs" in exits:
        return state.run(1.0)
    return state.run(1.0).exit(exits["code"], 2.0) if "code" in exits else state


@pytest.mark.parametrize(
    ("states", "policy", "expected"),
    [
        ([container()], "Always", "Pending"),
        ([container(runs=1)], "Always", "Running"),
        ([container(code=0)], "Always", "Running"),
        ([container(code=1)], "OnFailure", "Running"),
        ([container(code=0)], "OnFailure", "Succeeded"),
        ([container(code=1)], "Never", "Failed"),
        ([container(code=0), container(code=1)], "Never", "Failed"),
        ([container(code=0), container(runs=1)], "Never", "Running"),
        ([container(INIT, runs=1), container()], "Never", "Pending"),
        ([container(INIT, code=1), container()], "Never", "Failed"),
        ([container(INIT, code=1), container()], "Always", "Pending"),
        ([container(SIDECAR, runs=1), container(code=0)], "Never", "Running"),
        ([container(SIDECAR, code=143), container(code=0)], "Never", "Succeeded"),
        ([container(code=1).wait("CrashLoopBackOff")], "Always", "Running"),
    ],
)
def test_phases(states: list[State], policy: str, expected: str) -> None:
    assert phase(states, policy) == expected


def test_two_clusters_get_different_addresses() -> None:
    first, claim = reserve_network()
    second, other = reserve_network()
    claim.close()
    other.close()
    assert first != second
