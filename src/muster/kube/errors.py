"""How talking to the API can fail, told apart by what the caller may do next.

An answer that says no (`ApiError`) is final. A call that never left (`UnsentError`) may simply be made again.
A call without an answer (`LostError`) may or may not have happened: only reading tells.
"""

import msgspec

from muster.errors import UserError


class ConfigError(UserError):
    """A kubeconfig, a credential or a service account that cannot be used as it is."""


class KubeError(Exception):
    """Anything that went wrong between here and the API."""


class UnsentError(KubeError):
    """Nothing was sent: no connection, no credential, or no time left in which sending was allowed."""


class LostError(KubeError):
    """It may have been sent, and no complete answer came: a time-out or a cut connection."""


class ApiError(KubeError):
    """The API answered with a Status that is not success."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        retry_after: float | None = None,
        causes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(f"{message} ({code} {reason})" if reason else f"{message} ({code})")
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.causes = causes

    @property
    def is_conflict(self) -> bool:
        """Whether the object is not, or no longer, what the call assumed."""
        return self.code == 409

    @property
    def is_gone(self) -> bool:
        """Whether the version asked for is too old to be told."""
        return self.code == 410 or self.reason in {"Expired", "Gone"}

    @property
    def is_missing(self) -> bool:
        """Whether the object, or its kind, does not exist."""
        return self.code == 404

    @property
    def is_budget(self) -> bool:
        """Whether a PodDisruptionBudget forbids an eviction for now."""
        return self.code == 429 and "DisruptionBudget" in self.causes

    @property
    def is_throttled(self) -> bool:
        """Whether the server refused to even look at it: it did not happen."""
        return self.code == 429 and not self.is_budget

    @property
    def is_server_fault(self) -> bool:
        """Whether the server broke on it: a change may or may not have happened."""
        return self.code >= 500


class _Cause(msgspec.Struct):
    reason: str | None = ""


class _Details(msgspec.Struct, rename="camel"):
    causes: list[_Cause] | None = None
    retry_after_seconds: float | None = None


class _Status(msgspec.Struct):
    message: str | None = ""
    reason: str | None = ""
    code: int | None = None
    details: _Details | None = None


_STATUS = msgspec.json.Decoder(_Status)


def from_status(body: bytes, code: int = 0, retry_after: str = "") -> ApiError:
    """The error a Status body spells; a proxy's page of text becomes one too."""
    try:
        status = _STATUS.decode(body)
    except msgspec.MsgspecError:
        words = " ".join(body[:200].decode("utf-8", "replace").split())
        return ApiError(code, "", words or "an empty answer", _seconds(retry_after))
    details = status.details or _Details()
    wait = _seconds(retry_after)
    return ApiError(
        status.code or code or 500,
        status.reason or "",
        status.message or "an answer without a message",
        details.retry_after_seconds or None if wait is None else wait,
        tuple(cause.reason or "" for cause in details.causes or ()),
    )


def _seconds(text: str) -> float | None:
    try:
        return max(0.0, float(text))
    except ValueError:
        return None  # absent, or a date: the API itself only ever sends seconds
