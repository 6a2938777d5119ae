"""The state of models as named boxes, and numbers that survive JSON."""

import json

import pytest
import torch
from torch import nn

from muster.elastic.device import chunks
from muster.elastic.state import UnsupportedState, coded, decoded, entries, prepare, saved_parts, scalars


def trained(width: int = 5) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Sequential(nn.Linear(3, width), nn.BatchNorm1d(width), nn.Linear(width, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.5, betas=(0.8, 0.9))
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


@pytest.mark.parametrize("world", [1, 2, 3, 7])
def test_replicas_save_every_byte_once(world: int) -> None:
    model, optimizer = trained()
    whole = sum(e.tensor.nbytes for e in entries(model, optimizer, 0, 1))
    saved = [saved_parts(entries(model, optimizer, r, world)) for r in range(world)]
    assert sum(p.view.nbytes for parts in saved for p in parts) == whole
    assert max(sum(p.view.nbytes for p in parts) for parts in saved) < whole or world == 1


def test_running_statistics_are_known_to_change_in_the_forward_pass() -> None:
    found = {e.name: e.changes for e in entries(*trained(), 0, 1)}
    assert found["model.1.running_mean"] and found["model.1.num_batches_tracked"]
    assert not found["model.0.weight"] and not found["optim.0.weight.exp_avg"]


def test_an_optimizer_is_prepared_for_what_was_saved() -> None:
    model, optimizer = trained()
    found = entries(model, optimizer, 0, 1)
    numbers = json.loads(json.dumps(scalars(model, optimizer)))
    other, fresh = trained()
    fresh.state.clear()
    fresh.param_groups[0]["lr"] = 9.0
    prepare(other, fresh, {e.name: (e.dtype, e.shape) for e in found}, numbers)
    assert fresh.param_groups[0]["lr"] == 0.5
    assert fresh.param_groups[0]["betas"] == (0.8, 0.9)
    assert [e.name for e in entries(other, fresh, 0, 1)] == [e.name for e in found]


def test_wrappers_do_not_change_names() -> None:
    model, optimizer = trained()
    wrapped = nn.Module()
    wrapped.module = model
    assert [e.name for e in entries(wrapped, optimizer, 0, 1)] == [e.name for e in entries(model, optimizer, 0, 1)]


def test_a_foreign_optimizer_is_refused() -> None:
    model, _ = trained()
    _, other = trained()
    with pytest.raises(UnsupportedState, match="is not the model's"):
        entries(model, other, 0, 1)


def test_numbers_survive_json() -> None:
    values = {"a": (1, 2.5, None), "b": [True, "x"], 3: {"c": torch.tensor([1.0, 2.0])}}
    back = decoded(json.loads(json.dumps(coded(values, "v"))))
    assert back["a"] == (1, 2.5, None) and back["b"] == [True, "x"]
    assert torch.equal(back[3]["c"], torch.tensor([1.0, 2.0]))
    with pytest.raises(UnsupportedState, match="hook is a function"):
        coded(trained, "hook")


def test_chunks_cover_a_tensor_in_order() -> None:
    view, into = (
        torch.arange(40 << 20, dtype=torch.uint8).view(40, 1 << 20),
        torch.zeros(40, 1 << 20, dtype=torch.uint8),
    )
    for chunk in chunks(view, into):
        assert chunk.source.nbytes <= 32 << 20
        chunk.into.copy_(chunk.source)
    assert torch.equal(view, into)
    assert len(list(chunks(torch.tensor(1.0), torch.tensor(0.0)))) == 1
