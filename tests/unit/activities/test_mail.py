"""Mail through a server of the test's own, which speaks as much SMTP as is needed."""

from __future__ import annotations

import email
import socketserver
import threading
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import default
from typing import ClassVar

import pytest

from activities import mail
from orchestrator import ApplicationError


class Session(socketserver.StreamRequestHandler):
    """Refuses receivers named after the answer they get, such as `550@example.org`."""

    mails: ClassVar[list[bytes]] = []

    def handle(self) -> None:
        self.say("220 test")
        while line := self.rfile.readline().decode().strip():
            match line.split()[0].upper():
                case "EHLO" | "HELO":
                    self.say("250 test")
                case "RCPT" if line.split("<")[1][:3].isdigit():
                    self.say(f"{line.split('<')[1][:3]} not here")
                case "DATA":
                    self.say("354 go on")
                    lines = []
                    while (line_of_mail := self.rfile.readline()) != b".\r\n":
                        lines.append(line_of_mail)
                    self.mails.append(b"".join(lines))
                    self.say("250 taken")
                case "QUIT":
                    self.say("221 bye")
                    return
                case _:
                    self.say("250 ok")

    def say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@pytest.fixture
def mails(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv(mail.SERVER_VARIABLE, f"smtp://127.0.0.1:{server.server_address[1]}")
        Session.mails.clear()
        yield Session.mails
        server.shutdown()


def read(raw: bytes) -> EmailMessage:
    message = email.message_from_bytes(raw, policy=default)
    assert isinstance(message, EmailMessage)
    return message


def test_a_mail_arrives_as_it_was_written(mails: list[bytes]) -> None:
    result = mail.send(["Ann <ann@example.org>"], "Grüße 🎈", "Hällo", sender="shop@example.org", html="<b>Hällo</b>")
    message = read(mails[0])
    assert (message["Subject"], message["To"], message["Message-ID"]) == (
        "Grüße 🎈",
        "Ann <ann@example.org>",
        result.message_id,
    )
    body = message.get_body(("plain",))
    assert body is not None
    assert body.get_content().strip() == "Hällo"
    assert result.message_id.endswith("@example.org>")


def test_receivers_who_are_refused_are_told_when_others_are_taken(mails: list[bytes]) -> None:
    result = mail.send(["550@example.org", "ann@example.org"], "Hi", "x", sender="shop@example.org")
    assert len(mails) == 1
    assert list(result.refused) == ["550@example.org"]


@pytest.mark.parametrize(("code", "for_good"), [("550", True), ("450", False)])
def test_the_servers_code_decides_whether_another_try_helps(mails: list[bytes], code: str, for_good: bool) -> None:
    with pytest.raises(ApplicationError) as caught:
        mail.send([f"{code}@example.org"], "Hi", "x", sender="shop@example.org")
    assert caught.value.non_retryable is for_good
    assert mails == []


@pytest.mark.parametrize(
    ("to", "subject", "sender"),
    [
        (["ann@example.org"], "Hi\r\nBcc: all@example.org", "shop@example.org"),
        (["ann@example.org\r\nBcc: all@example.org"], "Hi", "shop@example.org"),
        (["ann@example.org"], "Hi", "shop@example.org\nX: y"),
        ([], "Hi", "shop@example.org"),
    ],
)
def test_a_line_break_cannot_smuggle_a_header(mails: list[bytes], to: list[str], subject: str, sender: str) -> None:
    with pytest.raises(ApplicationError) as caught:
        mail.send(to, subject, "x", sender=sender)
    assert caught.value.non_retryable
    assert mails == []


def test_without_a_server_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(mail.SERVER_VARIABLE, raising=False)
    with pytest.raises(ApplicationError, match="set ACTIVITIES_SMTP_URL"):
        mail.send(["ann@example.org"], "Hi", "x", sender="shop@example.org")


def test_a_password_is_not_sent_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(mail.SERVER_VARIABLE, "smtp://user:password@127.0.0.1:9")
    with pytest.raises(ApplicationError, match="in the clear"):
        mail.send(["ann@example.org"], "Hi", "x", sender="shop@example.org")


def test_a_server_that_is_not_there_is_worth_another_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(mail.SERVER_VARIABLE, "smtp://127.0.0.1:9")
    with pytest.raises(ApplicationError) as caught:
        mail.send(["ann@example.org"], "Hi", "x", sender="shop@example.org", timeout=1)
    assert (caught.value.type, caught.value.non_retryable) == ("MailUnavailable", False)
