"""One HTTP request, against a server of the test's own on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from activities import http
from orchestrator import ApplicationError


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        match self.path.split("/")[1:]:
            case ["status", code]:
                self.answer(int(code), b"because", {"Retry-After": "7"})
            case ["moved"]:
                self.answer(302, b"", {"Location": "/status/200"})
            case ["big"]:
                self.answer(200, b"x" * (http.MAX_BODY_BYTES + 1))
            case ["cut"]:
                self.send_response(200)
                self.send_header("Content-Length", "10")
                self.end_headers()
                self.wfile.write(b"short")
            case _:
                length = int(self.headers.get("Content-Length", 0))
                said = {"method": self.command, "headers": dict(self.headers), "body": self.rfile.read(length).decode()}
                self.answer(200, json.dumps(said).encode(), {"X-Where": self.path})

    do_POST = do_GET  # noqa: N815 - the server looks for this name

    def answer(self, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(code)
        for name, value in ({"Content-Length": str(len(body))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_an_answer_has_status_headers_and_body(server: str) -> None:
    answer = http.request(
        f"{server}/echo", method="post", headers={"X-Who": "Zoë".encode().decode("latin-1")}, body="grüße"
    )
    assert (answer.status, answer.headers["x-where"]) == (200, "/echo")
    assert answer.json_body()["method"] == "POST"
    assert answer.json_body()["body"] == "grüße"
    assert "grüße" in json.loads(answer.text)["body"]


def test_a_secret_header_is_read_from_the_environment(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "Bearer s3cret")
    answer = http.request(f"{server}/echo", secret_headers={"Authorization": "SHOP_TOKEN"})
    assert answer.json_body()["headers"]["Authorization"] == "Bearer s3cret"
    with pytest.raises(ApplicationError, match="set NO_SUCH"):
        http.request(f"{server}/echo", secret_headers={"Authorization": "NO_SUCH"})


@pytest.mark.parametrize(
    ("code", "for_good"), [(400, True), (404, True), (408, False), (429, False), (500, False), (503, False)]
)
def test_the_status_decides_whether_another_try_helps(server: str, code: int, for_good: bool) -> None:
    with pytest.raises(ApplicationError, match=f"answered with {code}") as caught:
        http.request(f"{server}/status/{code}")
    assert caught.value.non_retryable is for_good
    assert caught.value.type == "HttpStatus"
    assert caught.value.details == (code, "because")
    assert caught.value.next_retry_delay == timedelta(seconds=7)


def test_a_redirect_is_not_followed(server: str) -> None:
    with pytest.raises(ApplicationError, match="302") as caught:
        http.request(f"{server}/moved", headers={"Authorization": "mine"})
    assert caught.value.non_retryable


def test_an_answer_that_is_too_large_is_refused(server: str) -> None:
    with pytest.raises(ApplicationError, match="larger than") as caught:
        http.request(f"{server}/big")
    assert caught.value.non_retryable


def test_an_answer_cut_short_is_worth_another_try(server: str) -> None:
    with pytest.raises(ApplicationError) as caught:
        http.request(f"{server}/cut")
    assert (caught.value.type, caught.value.non_retryable) == ("HttpUnreachable", False)


def test_a_server_that_is_not_there_is_worth_another_try() -> None:
    with pytest.raises(ApplicationError) as caught:
        http.request("http://127.0.0.1:9/", timeout=1)
    assert (caught.value.type, caught.value.non_retryable) == ("HttpUnreachable", False)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://localhost/", "localhost", "", "http://"])
def test_only_http_urls_are_opened(url: str) -> None:
    with pytest.raises(ApplicationError):
        http.request(url)


def test_a_header_cannot_smuggle_another_one(server: str) -> None:
    with pytest.raises(ApplicationError) as caught:
        http.request(f"{server}/echo", headers={"X-A": "1\r\nX-B: 2"})
    assert caught.value.non_retryable
