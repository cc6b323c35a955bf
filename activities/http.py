"""A ready activity for HTTP: one request, retried when trying again can help.

Redirects are not followed, since the request's headers (and with them its secrets) would go to a host nobody named.
What a workflow passes to an activity stays in its history, so secrets are named here and read from the worker's
environment.
"""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pydantic import BaseModel, ConfigDict

from orchestrator import ApplicationError, activity

MAX_BODY_BYTES = 1024 * 1024
_WORTH_ANOTHER_TRY = {408, 425, 429}


class HttpResponse(BaseModel):
    """An answer with a status below 300. Header names are in lower case."""

    model_config = ConfigDict(frozen=True)

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as UTF-8 text, with a replacement character for what is none."""
        return self.body.decode("utf-8", errors="replace")

    def json_body(self) -> Any:
        """Return the body read as JSON."""
        return json.loads(self.body)


@activity.defn(name="http.request", start_to_close_timeout=timedelta(minutes=2))
def request(
    url: str,
    *,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    secret_headers: dict[str, str] | None = None,
    body: str | None = None,
    timeout: float = 30.0,
) -> HttpResponse:
    """Send one HTTP request. Every request but GET and HEAD carries the activity's key as ``Idempotency-Key``.

    Args:
        url: ``http://…`` or ``https://…``.
        method: GET, POST, PUT, PATCH, DELETE or HEAD.
        headers: headers as they are.
        secret_headers: header name → name of the worker's environment variable that holds its value.
        body: text, sent as UTF-8.
        timeout: seconds to wait for the connection and for each answer.

    Raises:
        ApplicationError: ``HttpStatus`` with details (status, beginning of the body), for good when the status is
            3xx or 4xx, except 408, 425 and 429; ``HttpUnreachable``, worth another try; ``HttpBodyTooLarge`` and
            ``HttpBadRequest``, for good.
    """
    given = {**(headers or {}), **_secrets(secret_headers or {})}
    try:
        message = _message(url, method.upper(), given, body)
        with _OPENER.open(message, timeout=timeout) as answer:
            return HttpResponse(status=answer.status, headers=_lower(answer.headers), body=_read(answer))
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(error, f"{method.upper()} {url}") from error
    except (ValueError, http.client.InvalidURL) as error:
        raise _bad_request(str(error)) from error
    except (OSError, http.client.HTTPException) as error:
        raise ApplicationError(f"{method.upper()} {url}: {error}", type="HttpUnreachable") from error


def _message(url: str, method: str, headers: Mapping[str, str], body: str | None) -> urllib.request.Request:
    if not url.startswith(("http://", "https://")):
        raise _bad_request(f"{url!r} is no http or https URL")
    data = None if body is None else body.encode()
    message = urllib.request.Request(url, data=data, headers=dict(headers), method=method)  # noqa: S310 - checked above
    if method not in {"GET", "HEAD"} and activity.in_workflow():
        message.add_header("Idempotency-Key", activity.info().idempotency_key)
    return message


def _bad_request(message: str) -> ApplicationError:
    return ApplicationError(message, type="HttpBadRequest", non_retryable=True)


def _secrets(names: Mapping[str, str]) -> dict[str, str]:
    missing = [variable for variable in names.values() if variable not in os.environ]
    if missing:
        raise ApplicationError(f"set {', '.join(missing)} in the worker's environment", type="HttpSecretMissing")
    return {header: os.environ[variable] for header, variable in names.items()}


def _read(answer: http.client.HTTPResponse) -> bytes:
    body = answer.read(MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        message = f"the answer is larger than {MAX_BODY_BYTES} bytes; store it in an activity of your own"
        raise ApplicationError(message, type="HttpBodyTooLarge", non_retryable=True)
    if answer.length:
        # Reading up to a limit ends quietly where the connection does.
        raise http.client.IncompleteRead(body, answer.length)
    return body


def _refusal(error: urllib.error.HTTPError, what: str) -> ApplicationError:
    excerpt = error.read(2000).decode("utf-8", errors="replace")
    wait = error.headers.get("Retry-After", "")
    return ApplicationError(
        f"{what} was answered with {error.code} {error.reason}",
        error.code,
        excerpt,
        type="HttpStatus",
        non_retryable=error.code < 500 and error.code not in _WORTH_ANOTHER_TRY,
        next_retry_delay=timedelta(seconds=int(wait)) if wait.isascii() and wait.isdigit() and len(wait) < 6 else None,
    )


def _lower(headers: http.client.HTTPMessage) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


# Built from single handlers, so that neither file: nor ftp: can be opened.
_OPENER = urllib.request.OpenerDirector()
for _handler in (
    urllib.request.ProxyHandler(),
    urllib.request.HTTPHandler(),
    urllib.request.HTTPSHandler(),
    urllib.request.HTTPDefaultErrorHandler(),
    urllib.request.HTTPErrorProcessor(),
    _NoRedirects(),
):
    _OPENER.add_handler(_handler)
