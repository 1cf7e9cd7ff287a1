"""The hash of a request: a chain over its messages, sealed with all the rest; so a longer one costs what is new.

- chain(0) is 16 zero bytes; chain(n) = BLAKE2b-16(chain(n - 1) + canonical(message n));
- hash = BLAKE2b-16(chain(all messages) + canonical(the request assembled without messages)).
"""

from __future__ import annotations

import base64
import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SIZE: Final = 16

START: Final = bytes(_SIZE)
"""The chain of no messages."""

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def canonical(value: object) -> bytes:
    """The same bytes for equal values: JSON with sorted keys and without spaces, bytes as base64."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, OverflowError):  # lone surrogates, or an int over 64 bits
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=_base64).encode()


def chained(chain: bytes, messages: Iterable[Mapping[str, Any]]) -> bytes:
    """The chain of more messages: `chain`, and then `messages`."""
    for message in messages:
        chain = blake2b(chain + canonical(message), digest_size=_SIZE).digest()
    return chain


def sealed(chain: bytes, rest: Mapping[str, Any]) -> str:
    """The hash of a request, in hex. `chain`: of its messages. `rest`: the request as assembled without them."""
    return blake2b(chain + canonical(rest), digest_size=_SIZE).hexdigest()


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
