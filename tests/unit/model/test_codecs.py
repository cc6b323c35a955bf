"""The codec chain: a seam that is an identity now, and reads everything that was ever stored."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from orchestrator.errors import ConfigurationError, PayloadError
from orchestrator.model.payloads import Codec, PayloadConverter


class Zlib:
    name = "zlib"

    def encode(self, data: bytes, /) -> bytes:
        return zlib.compress(data)

    def decode(self, data: bytes, /) -> bytes:
        return zlib.decompress(data)


class Xor:
    def __init__(self, name: str = "xor-7", key: int = 7) -> None:
        self.name = name
        self.key = key

    def encode(self, data: bytes, /) -> bytes:
        return bytes(byte ^ self.key for byte in data)

    decode = encode


VALUE = {"a": ["x" * 1000, 1, None]}


def chain(*codecs: Codec, **options: Any) -> PayloadConverter:
    return PayloadConverter(codecs, **options)


def test_without_codecs_the_text_is_stored_as_it_is():
    assert PayloadConverter().encode([1]).data == b"j[1]"


def test_codecs_are_applied_in_order_and_undone_in_reverse():
    both = chain(Zlib(), Xor())
    data = both.encode(VALUE).data
    assert data.startswith(b"czlib,xor-7:")
    assert len(data) < 100
    assert both.decode(data) == VALUE


def test_what_was_stored_before_a_codec_came_still_decodes():
    plain = PayloadConverter().encode(VALUE).data
    compressed = chain(Zlib()).encode(VALUE).data
    now = chain(Xor(), Zlib())
    assert now.decode(plain) == now.decode(compressed) == VALUE


def test_the_digest_is_taken_before_the_codecs():
    assert chain(Zlib()).encode(VALUE).digest == PayloadConverter().encode(VALUE).digest


def test_the_limit_holds_for_what_is_stored():
    assert chain(Zlib(), limit=100).encode(VALUE)
    with pytest.raises(PayloadError, match="over the limit"):
        chain(limit=100).encode(VALUE)


def test_a_codec_that_is_not_configured_is_named():
    data = chain(Zlib(), Xor()).encode(VALUE).data
    with pytest.raises(PayloadError, match="codec 'xor-7', which is not configured"):
        chain(Zlib()).decode(data, argument="input")


def test_bytes_that_a_codec_cannot_decode_are_a_payload_error():
    with pytest.raises(PayloadError, match="input: the codec 'zlib' can't decode it: error"):
        chain(Zlib()).decode(b"czlib:garbage", argument="input")


@pytest.mark.parametrize(
    ("data", "why"), [(b"", "start with b''"), (b"\x80\x04K\x01.", "does not know"), (b"czlib", "cut off")]
)
def test_unknown_forms_are_refused_and_never_guessed(data, why):
    with pytest.raises(PayloadError, match=why):
        chain(Zlib()).decode(data)


@pytest.mark.parametrize("name", ["", "a,b", "a:b", "Zip", "x" * 41, "é"])
def test_a_name_that_cannot_be_stored_is_a_configuration_error(name):
    with pytest.raises(ConfigurationError, match="orchestrator_codecs"):
        chain(Xor(name))


def test_two_codecs_of_one_name_are_a_configuration_error():
    with pytest.raises(ConfigurationError, match="twice"):
        chain(Xor(), Xor(key=8))


def test_a_codec_that_fails_to_encode_is_not_passed_over():
    class Broken(Xor):
        def encode(self, data: bytes, /) -> bytes:
            raise ConnectionError("no key server")

    with pytest.raises(ConnectionError):
        chain(Broken()).encode(1)
