"""Least and most of each role as the brain takes them, and what users say of max, speed and parallelism."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from muster.dialects.reading import HOLDING
from muster.dialects.roles import Part
from muster.dialects.terms import Problem
from muster.dialects.wishes import MAX, PARALLELISM, SPEEDUP, Wishes
from muster.model.gang import Role
from muster.model.topology import Parallelism


def model_roles(
    parts: Sequence[Part], shares: Sequence[int], wished: Wishes, problems: list[Problem], *, stopped: bool
) -> list[Role]:
    """Roles for the brain. What users ask of size goes to the largest role; what cannot be is told."""
    main = max(range(len(parts)), key=lambda number: (parts[number].size, -number))
    roles = [_role(part, share, stopped) for part, share in zip(parts, shares, strict=True)]
    roles[main] = _grown(roles, main, parts[main], wished, problems)
    if wished.speedup:
        roles[main] = replace(roles[main], speedup=wished.speedup)
        _check_curve(wished, problems)
    if wished.parallelism is not None:
        members = _in_members(wished.parallelism, roles[main].min, _cards(parts[main].shape.request))
        if members is None:
            problems.append(_wrong_product(wished.parallelism, roles[main].min, parts[main]))
        roles[main] = replace(roles[main], parallelism=members)
    return roles


def _role(part: Part, share: int, stopped: bool) -> Role:
    reachable = part.count(HOLDING | {"waiting", "succeeded"})
    if part.later or stopped:
        reachable += part.absent
    return Role(
        name=part.name,
        min=share,
        request=part.shape.request,
        max=max(share, reachable),
        rules=part.shape.rules,
        labels=part.labels,
        later=min(part.absent, share) if part.later else 0,
    )


def _grown(roles: Sequence[Role], main: int, part: Part, wished: Wishes, problems: list[Problem]) -> Role:
    role = roles[main]
    if wished.max is None:
        return replace(role, max=max(role.most, part.most)) if part.most > part.size else role
    wanted = wished.max - sum(each.most for number, each in enumerate(roles) if number != main)
    if wanted < role.min:
        problems.append(Problem(MAX, f"{wished.max} is below the minimum; raise it or remove it"))
    elif part.most:
        return replace(role, max=wanted)
    elif wanted > part.size:
        message = f"the owner makes {part.size} members and cannot be resized; raise its size instead"
        problems.append(Problem(MAX, message))
    else:
        return replace(role, max=min(wanted, role.most))
    return role


def _check_curve(wished: Wishes, problems: list[Problem]) -> None:
    speeds = [speed for _, speed in wished.speedup]
    if speeds != sorted(speeds):
        problems.append(Problem(SPEEDUP, "more members are slower than fewer; remove the larger sizes"))


def _cards(request: Mapping[str, int]) -> int:
    return max((number for name, number in request.items() if "gpu" in name.rpartition("/")[2]), default=0)


def _in_members(ranks: Parallelism, members: int, cards: int) -> Parallelism | None:
    """Ranks are processes, one per card; the brain thinks in members. None where the product fits neither."""
    product = ranks.tp * ranks.pp * ranks.dp
    if product == members:
        return ranks
    if cards < 2 or product != members * cards:
        return None
    if ranks.tp % cards == 0:
        return replace(ranks, tp=ranks.tp // cards)
    stages = cards // ranks.tp
    if cards % ranks.tp:
        return None
    if ranks.pp % stages == 0:
        return Parallelism(1, ranks.pp // stages, ranks.dp)
    return Parallelism(1, 1, members) if stages % ranks.pp == 0 else None


def _wrong_product(ranks: Parallelism, members: int, part: Part) -> Problem:
    product = ranks.tp * ranks.pp * ranks.dp
    cards = _cards(part.shape.request)
    size = f"role {part.name} has {members} members of {cards} GPUs"
    message = f"tp x pp x dp is {product}, but {size}; make them agree"
    return Problem(PARALLELISM, message)
