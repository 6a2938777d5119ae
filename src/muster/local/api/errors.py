"""Errors as Kubernetes tells them: a code for programs, a reason for controllers, a sentence for people.

Clients decide by `reason` and `code`, and users read `message`, so both follow the real server word for word.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    504: "Timeout",
}


@dataclass(slots=True)
class ApiError(Exception):
    """A refusal, renderable as a Kubernetes Status."""

    code: int
    reason: str
    message: str
    details: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.message

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if self.details:
            status["details"] = self.details
        return status


@dataclass(frozen=True, slots=True)
class FieldError:
    """One wrong field of an object: its path, what is wrong, and the words the real server uses for it."""

    reason: str
    field: str
    message: str

    def cause(self) -> dict[str, str]:
        return {"reason": self.reason, "message": self.message, "field": self.field}


def qualified(plural: str, group: str) -> str:
    """A resource as error messages name it: `pods`, `jobs.batch`."""
    return f"{plural}.{group}" if group else plural


def _details(group: str, kind: str, name: str, **more: Any) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    return {**details, "kind": kind, **more}


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def not_found(plural: str, group: str, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{qualified(plural, group)} "{name}" not found', _details(group, plural, name))


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def already_exists(plural: str, group: str, name: str) -> ApiError:
    message = f'{qualified(plural, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(group, plural, name))


def conflict(plural: str, group: str, name: str, why: str = "") -> ApiError:
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(group, plural, name))


def forbidden(plural: str, group: str, name: str, why: str) -> ApiError:
    named = f'{qualified(plural, group)} "{name}" is forbidden' if name else f"{qualified(plural, group)} is forbidden"
    return ApiError(403, "Forbidden", f"{named}: {why}", _details(group, plural, name))


def invalid(group: str, kind: str, name: str, errors: Iterable[FieldError]) -> ApiError:
    listed = list(errors)
    texts = list(dict.fromkeys(f"{e.field}: {e.message}" for e in listed))
    joined = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    message = f'{qualified(kind, group)} "{name}" is invalid: {joined}'
    return ApiError(422, "Invalid", message, _details(group, kind, name, causes=[e.cause() for e in listed]))


def gone(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message)


def unsupported_media_type(message: str) -> ApiError:
    return ApiError(415, "UnsupportedMediaType", message)


def too_many_requests(message: str, details: dict[str, Any] | None = None) -> ApiError:
    return ApiError(429, "TooManyRequests", message, details or {})


def required(path: str, why: str = "") -> FieldError:
    return FieldError("FieldValueRequired", path, f"Required value: {why}" if why else "Required value")


def invalid_value(path: str, value: object, why: str) -> FieldError:
    return FieldError("FieldValueInvalid", path, f"Invalid value: {_shown(value)}: {why}")


def not_supported(path: str, value: object, allowed: Iterable[str]) -> FieldError:
    names = ", ".join(f'"{name}"' for name in sorted(allowed))
    message = f"Unsupported value: {_shown(value)}: supported values: {names}"
    return FieldError("FieldValueNotSupported", path, message)


def field_forbidden(path: str, why: str) -> FieldError:
    return FieldError("FieldValueForbidden", path, f"Forbidden: {why}")


def duplicate(path: str, value: object) -> FieldError:
    return FieldError("FieldValueDuplicate", path, f"Duplicate value: {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, (dict, list)):
        return orjson.dumps(value).decode()
    return str(value)
