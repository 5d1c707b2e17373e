"""Pure classification of exceptions from store libraries."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from tritonpy import Unavailable


class FailureKind(enum.Enum):
    """Kinds of failures, which determine whether to retry, with or without new credentials."""

    DENIED = "access is denied"
    MISSING = "it does not exist"
    UNREACHABLE = "it cannot be reached"
    UNREADABLE = "it cannot be read"


class StoreError(Unavailable):
    """A store failed in spite of retries."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


_DENIED_NAMES = {
    "ClientAuthenticationError",
    "CredentialRetrievalError",
    "CredentialUnavailableError",
    "DefaultCredentialsError",
    "NoCredentialsError",
    "PartialCredentialsError",
    "ProfileNotFound",
    "RefreshError",
    "TokenRetrievalError",
}
_DENIED_CODES = {
    "AccessDenied",
    "AuthorizationHeaderMalformed",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidToken",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
}
_RETRIED_STATUSES = {408, 429}
_BROKEN_NAMES = {"ParamValidationError"}


def classify_error(error: BaseException) -> FailureKind:
    """Return the kind of `error`; unknown errors are considered temporary and are retried."""
    causes = list(_causes(error))
    status = next((found for cause in causes if (found := _status(cause))), 0)
    if any(_is_denied(cause) for cause in causes) or status in {401, 403}:
        return FailureKind.DENIED
    if status == 404 or any(
        isinstance(cause, FileNotFoundError | NotADirectoryError) for cause in causes
    ):
        return FailureKind.MISSING
    refused = (400 <= status < 500 and status not in _RETRIED_STATUSES) or type(
        error
    ).__name__ in _BROKEN_NAMES
    # As a cause, a ValueError may be a malformed response, which is temporary. As the error itself,
    # it reports invalid arguments.
    return (
        FailureKind.UNREADABLE
        if refused or isinstance(error, TypeError | NotImplementedError)
        else FailureKind.UNREACHABLE
    )


def error_text(error: BaseException) -> str:
    """Return the error as one line: its type and the informative part of its text."""
    lines = str(error).strip().splitlines()
    text = " ".join(line.strip() for line in lines[: 2 if lines and lines[0].endswith(":") else 1])
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    todo: BaseException | None = error
    while todo is not None and id(todo) not in seen:
        seen.add(id(todo))
        yield todo
        todo = todo.__cause__ or todo.__context__


def _is_denied(error: BaseException) -> bool:
    names = {kind.__name__ for kind in type(error).__mro__}
    text = str(error)
    return (
        isinstance(error, PermissionError)
        or not names.isdisjoint(_DENIED_NAMES)
        or _code(error) in _DENIED_CODES
        or text.startswith("Forbidden")
        or "invalid_grant" in text
    )


def _code(error: BaseException) -> str:
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def _status(error: BaseException) -> int:
    if any(kind.__name__ == "HttpProcessingError" for kind in type(error).__mro__):
        return 0  # aiohttp's error for a truncated response; its code is not a status of the store
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    for name in ("status", "status_code", "code"):
        value = getattr(error, name, None)
        if isinstance(value, int) or (isinstance(value, str) and value.isdigit()):
            return int(value)
    return 0
