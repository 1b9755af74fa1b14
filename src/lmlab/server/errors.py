"""Errors as clients of the OpenAI protocol expect them."""

from __future__ import annotations

from typing import Any

from lmlab.config import Mistake

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "overloaded_error",
}


class ApiError(Exception):
    """A request that is refused or failed, with its HTTP status.

    Args:
        message: what is wrong and what would be right.
        param: the field of the request.
        code: a short name for programs.
        retry_after_s: when to try again.
        closes: whether the connection ends, because what follows on it cannot be told apart from the body.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after_s: int | None = None,
        closes: bool = False,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code
        self.retry_after_s, self.closes = retry_after_s, closes

    @classmethod
    def of(cls, mistake: Mistake, param: str | None = None) -> ApiError:
        """Return the error of a user's mistake, whose settings are named like the fields of the request."""
        return cls(400, str(mistake), param=param or next(iter(mistake.settings), None), code=mistake.code)

    @property
    def body(self) -> dict[str, Any]:
        """The JSON document of the response."""
        kind = TYPES.get(self.status, "invalid_request_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the response."""
        if self.status == 401:
            return {"WWW-Authenticate": "Bearer"}
        if self.closes:
            return {"Connection": "close"}
        return {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}
