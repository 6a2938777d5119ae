"""What a plan asks for. Each action is complete in itself: the live scheduler and the simulator carry out the same."""

from dataclasses import dataclass, field

from muster.model.gang import Gang, Reservation, Seats


@dataclass(frozen=True, slots=True)
class Bind:
    """Members to put on nodes, in rank order. `why` tells a start from a repair or growth."""

    gang: Gang
    seats: tuple[Seats, ...]
    why: str = "start"  # start, backfill, repair, grow, pod
    complete: bool = True  # the quorum is met with this


@dataclass(frozen=True, slots=True)
class Reserve:
    """The gang is promised this start. To be written down before anything is started around it."""

    gang: Gang
    reservation: Reservation


@dataclass(frozen=True, slots=True)
class Stop:
    """The whole gang is to be stopped through its owner."""

    gang: Gang
    why: str


Action = Bind | Reserve | Stop


@dataclass(slots=True)
class Plan:
    """When to plan again even if nothing happens, the state knows: `State.wake_at`."""

    actions: list[Action] = field(default_factory=list)

    @property
    def binds(self) -> list[Bind]:
        return [action for action in self.actions if isinstance(action, Bind)]
