"""What a request asks for besides its object: who, how strictly, and whether only to try."""

from __future__ import annotations

from dataclasses import dataclass, field

SYSTEM_USER = "system:muster"


@dataclass(slots=True)
class Options:
    """Options of a write."""

    dry_run: bool = False
    user: str = SYSTEM_USER
    manager: str = "muster"
    validation: str = "Ignore"  # of unknown fields: Ignore, Warn or Strict
    force: bool = False  # server-side apply: take fields from other managers
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of a deletion."""

    grace: int | None = None
    propagation: str = ""
    uid: str = ""
    version: str = ""
    dry_run: bool = False
