"""What kind of failure an exception of a store's library is. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from tritonpy import Unavailable


class Kind(enum.Enum):
    """Whether to try again, with other credentials, or not at all."""

    DENIED = "access is denied"
    MISSING = "it is not there"
    AWAY = "it cannot be reached"
    BROKEN = "it cannot be read"


class StoreFailure(Unavailable):
    """A store did not do what it was asked for, however often."""

    def __init__(self, kind: Kind, message: str) -> None:
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
_TIMES_OUT = {408, 429}
_BROKEN_NAMES = {"ParamValidationError"}


def kind_of(error: BaseException) -> Kind:
    """Return what to make of `error`; what is not known may pass, and is tried again."""
    causes = list(_causes(error))
    status = next((found for cause in causes if (found := _status(cause))), 0)
    if any(_is_denied(cause) for cause in causes) or status in {401, 403}:
        return Kind.DENIED
    if status == 404 or any(isinstance(cause, FileNotFoundError | NotADirectoryError) for cause in causes):
        return Kind.MISSING
    refused = (400 <= status < 500 and status not in _TIMES_OUT) or type(error).__name__ in _BROKEN_NAMES
    # A ValueError may be an answer that is no JSON, which passes; as the error itself it is what the library says of its arguments.
    return Kind.BROKEN if refused or isinstance(error, TypeError | NotImplementedError) else Kind.AWAY


def text_of(error: BaseException) -> str:
    """Return the error in one line, that of its text which says something, after the name of its kind."""
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
        return 0  # aiohttp's own for an answer that was cut off: what it carries is no status of the store
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    for name in ("status", "status_code", "code"):
        value = getattr(error, name, None)
        if isinstance(value, int) or (isinstance(value, str) and value.isdigit()):
            return int(value)
    return 0
