"""A ready activity for mail: one message through the SMTP server in ACTIVITIES_SMTP_URL.

``smtp://host:25``, ``smtp+starttls://user:password@host:587`` or ``smtps://user:password@host:465``. A password is
never sent in the clear. SMTP knows no idempotency keys. The message id is made from the activity's, so a mail sent
twice is the same mail to the receiver's server.
"""

from __future__ import annotations

import os
import smtplib
import ssl
from datetime import timedelta
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from hashlib import sha256
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import BaseModel, ConfigDict

from orchestrator import ApplicationError, activity

SERVER_VARIABLE = "ACTIVITIES_SMTP_URL"


class MailResult(BaseModel):
    """What the server said: the message id, and the receivers it refused while it took the others."""

    model_config = ConfigDict(frozen=True)

    message_id: str
    refused: dict[str, str]


@activity.defn(name="mail.send", start_to_close_timeout=timedelta(minutes=2))
def send(
    to: list[str], subject: str, body: str, *, sender: str, html: str | None = None, timeout: float = 30.0
) -> MailResult:
    """Send one mail.

    Args:
        to: addresses of the receivers.
        subject: one line.
        body: plain text.
        sender: address of the sender.
        html: the same as HTML, when wanted.
        timeout: seconds to wait for each answer of the server.

    Raises:
        ApplicationError: ``MailRefused``, for good (SMTP 5xx, or a bad address or subject); ``MailUnavailable``,
            worth another try.
    """
    message = _message(to, subject, body, sender, html)
    try:
        with _connect(timeout) as server:
            refused = server.send_message(message)
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        raise _refusal(f"all receivers were refused: {error.recipients}", min(codes, default=500)) from error
    except smtplib.SMTPResponseException as error:
        raise _refusal(f"the server said {error.smtp_code} {error.smtp_error!r}", error.smtp_code) from error
    except (OSError, smtplib.SMTPException) as error:
        raise ApplicationError(f"the mail server cannot be used: {error}", type="MailUnavailable") from error
    return MailResult(
        message_id=message["Message-ID"], refused={who: f"{code} {text!r}" for who, (code, text) in refused.items()}
    )


def _message(to: list[str], subject: str, body: str, sender: str, html: str | None) -> EmailMessage:
    message = EmailMessage()
    try:
        # A line break in any of these would be another header; the email package raises ValueError for it.
        message["From"], message["To"], message["Subject"] = sender, ", ".join(to), subject
    except (ValueError, IndexError) as error:
        raise ApplicationError(
            f"the mail cannot be addressed: {error}", type="MailRefused", non_retryable=True
        ) from error
    if not to:
        raise ApplicationError("the mail has no receiver", type="MailRefused", non_retryable=True)
    message["Date"] = formatdate(localtime=False)
    message["Message-ID"] = _message_id(sender)
    message.set_content(body)
    if html is not None:
        message.add_alternative(html, subtype="html")
    return message


def _message_id(sender: str) -> str:
    domain = sender.rpartition("@")[2].strip(" >") or "localhost"
    if not activity.in_workflow():
        return make_msgid(domain=domain)
    return f"<{sha256(activity.info().idempotency_key.encode()).hexdigest()[:32]}@{domain}>"


def _connect(timeout: float) -> smtplib.SMTP:
    url = _server()
    secure = ssl.create_default_context()
    host = url.hostname or "localhost"
    server: smtplib.SMTP
    if url.scheme == "smtps":
        server = smtplib.SMTP_SSL(host, url.port or 465, timeout=timeout, context=secure)
    else:
        server = smtplib.SMTP(host, url.port or 25, timeout=timeout)
    try:
        if url.scheme == "smtp+starttls":
            server.starttls(context=secure)
        if url.username:
            server.login(unquote(url.username), unquote(url.password or ""))
    except BaseException:
        server.close()
        raise
    return server


def _server() -> SplitResult:
    url = urlsplit(os.environ.get(SERVER_VARIABLE, ""))
    if url.scheme not in {"smtp", "smtps", "smtp+starttls"}:
        message = f"set {SERVER_VARIABLE} in the worker's environment, for example to smtp://localhost:25"
        raise ApplicationError(message, type="MailUnavailable")
    if url.username and url.scheme == "smtp":
        message = f"{SERVER_VARIABLE} would send a password in the clear: use smtps:// or smtp+starttls://"
        raise ApplicationError(message, type="MailRefused", non_retryable=True)
    return url


def _refusal(message: str, code: int) -> ApplicationError:
    if code >= 500:
        return ApplicationError(message, code, type="MailRefused", non_retryable=True)
    return ApplicationError(message, code, type="MailUnavailable")
