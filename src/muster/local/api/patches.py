"""JSON merge patch and JSON patch. Neither changes the object it is given; what is not patched is shared."""

from __future__ import annotations

from typing import Any

import jsonpatch
import jsonpointer

from muster.local.api.errors import ApiError, bad_request

Object = dict[str, Any]


def merge(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merge(result.get(key), value)
        else:
            result[key] = value
    return result


def json_patch(target: Object, patch: Any) -> Object:
    """RFC 6902, with the statuses the real server gives."""
    if not isinstance(patch, list) or not all(isinstance(step, dict) for step in patch):
        raise bad_request("error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    if len(patch) > 10_000:
        words = f"The allowed maximum operations in a JSON patch is 10000, got {len(patch)}"
        raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {words}")
    try:
        result = jsonpatch.JsonPatch(patch).apply(target)
    except jsonpatch.JsonPatchTestFailed as error:
        raise ApiError(422, "Invalid", f"the server rejected our request: {_words(error)}") from None
    except jsonpatch.InvalidJsonPatch as error:
        raise bad_request(f"error decoding patch: {error}") from None
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError) as error:
        raise ApiError(
            422, "Invalid", f"the server rejected our request due to an error in our request: {_words(error)}"
        ) from None
    if not isinstance(result, dict):
        raise bad_request("the patched document is not an object")
    return result


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
