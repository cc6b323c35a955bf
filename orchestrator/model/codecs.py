"""The codec chain: how a payload's JSON becomes the bytes that are stored.

A stored payload tells by itself how to read it, so codecs may be added later and old rows still decode::

    j{"order":"42"}                 plain JSON, nothing else follows
    czlib,aes:<bytes>               JSON that went through ``zlib`` and then ``aes``

The first byte is the form; a form this version does not know is refused by name, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from orchestrator.errors import ConfigurationError, PayloadError

_PLAIN = b"j"
_CODED = b"c"
_NAME = re.compile(r"[a-z0-9_.-]{1,40}")


class Codec(Protocol):
    """Turns bytes into other bytes and back: compression, encryption, storage elsewhere.

    ``decode(encode(data)) == data`` must hold for all bytes; both raise whatever they like on failure.
    """

    @property
    def name(self) -> str:
        """Stored with each payload: lower-case letters, digits, ``_``, ``.`` and ``-``, at most 40."""
        ...

    def encode(self, data: bytes, /) -> bytes:
        """Returns the form to store."""
        ...

    def decode(self, data: bytes, /) -> bytes:
        """Returns what ``encode`` was given."""
        ...


class CodecChain:
    """Applies codecs in order on the way in and in reverse on the way out.

    Args:
        codecs: Applied first to last when storing.

    Raises:
        ConfigurationError: A codec's name is not fit to be stored, or is used twice.
    """

    def __init__(self, codecs: Sequence[Codec] = ()) -> None:
        names = [codec.name for codec in codecs]
        for name in names:
            if not _NAME.fullmatch(name):
                msg = f"orchestrator_codecs: {name!r} can't name a codec; use a-z, 0-9, '_', '.', '-', at most 40"
                raise ConfigurationError(msg)
        if len(set(names)) != len(names):
            msg = f"orchestrator_codecs: a codec name is used twice in {names}"
            raise ConfigurationError(msg)
        self._codecs = tuple(codecs)
        self._by_name = {codec.name: codec for codec in codecs}
        self._header = _CODED + ",".join(names).encode("ascii") + b":" if names else _PLAIN

    def wrap(self, body: bytes) -> bytes:
        """Returns the stored form of a JSON text.

        Raises:
            Exception: Whatever a codec raises; nothing is stored then.
        """
        for codec in self._codecs:
            body = codec.encode(body)
        return self._header + body

    def unwrap(self, data: bytes, argument: str) -> bytes:
        """Returns the JSON text of a stored payload.

        Args:
            data: The stored form.
            argument: Named by the error.

        Raises:
            PayloadError: The form is unknown, a codec is not configured, or it failed.
        """
        form = data[:1]
        if form == _PLAIN:
            return data[1:]
        if form != _CODED:
            raise PayloadError(argument, f"the stored bytes start with {form!r}, a form this version does not know")
        names, separator, body = data[1:].partition(b":")
        if not separator:
            raise PayloadError(argument, "the stored bytes are cut off: their list of codecs has no end")
        for name in reversed(names.decode("ascii", "replace").split(",")):
            codec = self._by_name.get(name)
            if codec is None:
                raise PayloadError(
                    argument, f"stored with the codec {name!r}, which is not configured here; see orchestrator_codecs"
                )
            try:
                body = codec.decode(body)
            except Exception as error:
                raise PayloadError(argument, f"the codec {name!r} can't decode it: {type(error).__name__}") from error
        return body
