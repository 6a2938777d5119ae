"""Durable checkpoints: torch reads them, damage is found, an older one is used."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.distributed.checkpoint.state_dict_loader import load as load_tensors

from muster.elastic.checkpoint import Damaged, load, newest, verify
from tests.elastic.jobs import Job, job
from tests.elastic.script import Net

pytestmark = [pytest.mark.xdist_group("elastic-jobs"), pytest.mark.chaos]  # trains with real processes


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Job]:
    """A sharded job of three that left two checkpoints."""
    directory = tmp_path_factory.mktemp("trained")
    store = directory / "store"
    options = ("--workers", "3", "--store", str(store), "--durable-every", "40")
    with job(directory / "job", *options, script=("--layout", "fsdp", "--samples", "1200")) as running:
        running.finish()
    return store, running


def fresh() -> tuple[nn.Module, torch.optim.Optimizer]:
    model = Net(33)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_torch_reads_it(trained: tuple[Path, Job]) -> None:
    store, running = trained
    path = newest(str(store))
    assert path.endswith("step-0000000100"), "the last step is durable"
    model, _ = fresh()
    state = {f"model.{n}": p.detach() for n, p in model.named_parameters()}
    load_tensors(state, checkpoint_id=path)
    for name, values in running.weights().items():
        assert state[f"model.{name}"].flatten().tolist() == values


def test_it_fills_another_layout(trained: tuple[Path, Job]) -> None:
    store, running = trained
    model, optimizer = fresh()
    extra, positions = load(newest(str(store)), model, optimizer)
    assert extra["step"] == 100
    assert len(positions) == 3
    for name, values in running.weights().items():
        assert model.get_parameter(name).detach().flatten().tolist() == values
    assert all(float(s["step"]) == 100 for s in optimizer.state.values())


@pytest.mark.parametrize("harm", ["flip", "cut", "gone"])
def test_damage_is_found_and_an_older_one_used(
    trained: tuple[Path, Job], harm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store, _ = trained
    last = Path(newest(str(store)))
    victim = sorted(last.glob("*.distcp"))[1]
    content = victim.read_bytes()
    try:
        match harm:
            case "flip":
                victim.write_bytes(content[:99] + bytes([content[99] ^ 4]) + content[100:])
            case "cut":
                victim.write_bytes(content[: len(content) // 2])
            case "gone":
                victim.unlink()
        with pytest.raises(Damaged):
            verify(last)
        older = newest(str(store))
        assert older and older < str(last)
        assert "an older one is used" in capsys.readouterr().err
    finally:
        victim.write_bytes(content)


def test_a_changed_model_is_refused(trained: tuple[Path, Job]) -> None:
    store, _ = trained
    model = Net(34)
    with pytest.raises(Damaged, match=r"model\.inner\.weight is"):
        load(newest(str(store)), model, torch.optim.AdamW(model.parameters()))


def test_the_position_in_the_data_is_there(trained: tuple[Path, Job]) -> None:
    note = json.loads((Path(newest(str(trained[0]))) / "muster.json").read_text())
    assert note["data"][0] == {"size": 1200, "turn": 1, "at": 0}


def test_an_empty_store_has_no_checkpoint(tmp_path: Path) -> None:
    assert newest(str(tmp_path)) == ""
