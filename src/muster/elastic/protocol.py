"""How members, their agents and the one authority of a job agree on who trains: the words they exchange.

Standard library only: the scheduler imports this module. Every change of membership is an epoch. The
authority proposes it (PREPARE), every live agent acknowledges once its worker stands still and says what it
could restore, then the authority commits it (COMMIT) together with the one step everybody continues from. A
message of an older epoch, of an older life of a worker or of an older authority is refused.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class Refused(Exception):
    """The message is not acceptable, and why."""


class Stale(Refused):
    """The message belongs to an epoch, a life or an authority that has been superseded."""


class Phase(StrEnum):
    FORMING = "forming"
    PREPARE = "prepare"
    COMMIT = "commit"
    SUSPENDED = "suspended"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Member:
    """A seat: an agent and the life of the worker it runs. `life` counts the workers it has started."""

    id: str
    address: str
    domain: str = ""
    life: int = 0


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """The identity of sealed state: part `index` of `of` at `step`, cut as in `epoch`."""

    step: int
    epoch: int
    index: int
    of: int
    live: bool = False


@dataclass(frozen=True, slots=True)
class Vote:
    """What one agent could contribute: the step its worker stands at unharmed, and the shards it holds."""

    live: int | None = None
    whole: bool = False
    shards: tuple[Shard, ...] = ()


class Source(StrEnum):
    LIVE = "live"  # survivors hold all of it in their models
    SHARDS = "shards"  # agents hold all of it in memory
    STORE = "store"  # the durable store, or nothing was ever saved


@dataclass(frozen=True, slots=True)
class Restore:
    """The one step every member continues from, and who has it."""

    step: int
    source: Source
    holders: tuple[tuple[str, str], ...] = ()  # (agent id, address)
    shard: Shard | None = None  # any one of the shards of that step; index is not meant
    live: tuple[str, ...] = ()  # members whose models stand at that step


@dataclass(frozen=True, slots=True)
class Status:
    """What an agent says about itself, whole, each time it speaks."""

    member: Member
    ready: bool = False
    trouble: int = 0  # the epoch in which its worker failed to continue
    protected: int = 0  # the newest epoch all of whose shards are sealed on enough agents
    resumed: int = 0  # the newest epoch its worker has trained in
    leaving: float | None = None  # seconds it can still wait
    finished: bool = False
    failed: str = ""
    step: int = 0
    committed: int = -1
    speed: float = 0.0  # samples per second of the whole job, as this member sees it
    flush: float = 0.0  # seconds to bring its state to the durable store at the measured rate
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Document:
    """The truth about one job, as the authority publishes it. `members` is in rank order."""

    job: str = ""
    term: int = 0
    version: int = 0
    epoch: int = 0
    phase: Phase = Phase.FORMING
    members: tuple[Member, ...] = ()
    planned: bool = False
    reason: str = ""
    restore: Restore | None = None
    released: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ack:
    epoch: int
    life: int
    vote: Vote = field(default_factory=Vote)


def encode(value: Any) -> dict[str, Any]:
    """A message as JSON-ready data."""
    return asdict(value)


def decode(kind: type[T], data: Mapping[str, Any]) -> T:
    """A message from decoded JSON; unknown fields are ignored, so that newer peers can say more."""
    hints = get_type_hints(kind)
    names = set(getattr(kind, "__dataclass_fields__", ()))
    try:
        return kind(**{k: _value(hints[k], v) for k, v in data.items() if k in names})
    except (TypeError, ValueError, KeyError) as error:
        raise Refused(f"malformed {kind.__name__}: {error}") from None


def _value(hint: Any, value: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        inner = next(a for a in get_args(hint) if a is not NoneType)
        return None if value is None else _value(inner, value)
    if get_origin(hint) is tuple:
        inner = get_args(hint)
        if inner[-1] is Ellipsis:
            return tuple(_value(inner[0], v) for v in value)
        return tuple(_value(h, v) for h, v in zip(inner, value, strict=True))
    if get_origin(hint) is dict:
        return {k: _value(get_args(hint)[1], v) for k, v in value.items()}
    if isinstance(hint, type) and is_dataclass(hint):
        return decode(hint, value)
    if hint is float and isinstance(value, int):
        return float(value)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(value)
    if not isinstance(value, hint):
        raise TypeError(f"expected {hint.__name__}, found {value!r}")
    return value


def accepts(epoch: int, term: int, document: Document) -> bool:
    """Whether an agent that has seen (epoch, term) may follow this document."""
    return document.term >= term and document.epoch >= epoch


def elect(votes: Mapping[str, Vote], addresses: Mapping[str, str], members: tuple[str, ...]) -> Restore:
    """The newest step that is held completely, by live models or by shards of one cut; never a mix."""
    live = [(v.live, who) for who, v in votes.items() if v.live is not None and v.whole and who in members]
    newest = max((step for step, _ in live), default=-1)
    cuts: dict[tuple[int, int, int, bool], dict[int, list[str]]] = {}
    for who, vote in votes.items():
        for s in vote.shards:
            cuts.setdefault((s.step, s.epoch, s.of, s.live), {}).setdefault(s.index, []).append(who)
    complete = [cut for cut, parts in cuts.items() if set(parts) >= set(range(cut[2]))]
    best = max(complete, default=None)
    if newest >= 0 and (best is None or newest >= best[0]):
        return _from_live(newest, votes, addresses, members)
    if best is None:
        return Restore(-1, Source.STORE)
    step, epoch, of, sliced = best
    holders = sorted({who for parts in cuts[best].values() for who in parts})
    standing = tuple(m for m in members if votes[m].live == step)
    where = tuple((h, addresses[h]) for h in holders)
    return Restore(step, Source.SHARDS, where, Shard(step, epoch, 0, of, sliced), standing)


def _from_live(step: int, votes: Mapping[str, Vote], addresses: Mapping[str, str], members: tuple[str, ...]) -> Restore:
    standing = tuple(m for m in members if votes[m].live == step and votes[m].whole)
    return Restore(step, Source.LIVE, tuple((m, addresses[m]) for m in standing), None, standing)


def protected_by(members: tuple[Member, ...], index: int, replicas: int) -> tuple[int, ...]:
    """Which members hold copies of member `index`'s shards: other failure domains first, ring order."""
    ring = [(index + k) % len(members) for k in range(1, len(members))]
    mine = members[index].domain
    chosen: list[int] = []
    seen = {mine}
    for other in ring:
        if len(chosen) < replicas and members[other].domain not in seen:
            chosen.append(other)
            seen.add(members[other].domain)
    elsewhere = [i for i in ring if i not in chosen and members[i].domain != mine]
    here = [i for i in ring if members[i].domain == mine]
    return tuple((chosen + elsewhere + here)[:replicas])


def shrink_order(members: tuple[Member, ...]) -> tuple[str, ...]:
    """Who to take away first: last ranks first, and never two neighbours of the replica ring in a row."""
    ranks = range(len(members) - 1, -1, -1)
    return tuple(members[i].id for i in [*ranks[::2], *ranks[1::2]])
