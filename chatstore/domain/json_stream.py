"""Streaming JSON parser: only one buffer and one value are in memory.

The standard library's decoder parses each value; it is as fast as any and rejects excessive nesting instead of
crashing. A value that cannot be parsed is skipped by its quotes and brackets, so that parsing can continue after it.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

BUFFER_BYTES = 64 * 1024

MAX_DIGITS = 20
"""Maximum length of an integer: 64 bits and a sign."""

DENSITY_CHECK_FROM = 1024 * 1024
MIN_CHARACTERS_PER_BRACKET = 25
"""A value of more than a megabyte must have at least this many characters per opening bracket, since shorter ones can
only serve to exhaust memory: `[],` takes sixty bytes. The users of a reaction, of which a message has thousands, are
250 characters each.
"""

_SPACE = re.compile(r"[ \t\n\r]*")
_OUTSIDE = re.compile(r'["{}\[\],]')
_NESTED = re.compile(r'["{}\[\]]')
_IN_TEXT = re.compile(r'["\\]')


class BrokenJson(ValueError):
    """The text is not JSON from here on; later values cannot be found."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Placeholder for a value that could not be parsed; parsing continues after it."""

    reason: str


class JsonStream:
    """Parser of a JSON text from `read(size)`, the method of a binary file.

    limit: maximum characters per value; larger ones are skipped.
    """

    def __init__(self, read: Callable[[int], bytes], *, limit: int) -> None:
        self._read = read
        self._limit = limit
        # Invalid UTF-8 becomes lone surrogates: only the string that contains it is affected.
        self._decode_bytes = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
        self._text = ""
        self._at = 0
        self._start = 0
        self._bytes_before = 0
        self._is_at_end = False

    @property
    def position(self) -> int:
        """The byte offset (without a byte order mark) at which the value that was last read begins."""
        return self._bytes_before + _count_bytes(self._text[: self._start])

    def peek(self) -> str:
        """Return the next character that is not whitespace, "" at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text) or not self._read_more():
                return self._text[self._at : self._at + 1]

    def members(self) -> Iterator[str]:
        """Yield the keys of an object, each before its value, which the caller must read or skip."""
        self._expect("{")
        if self._accept("}"):
            return
        while True:
            key = self.value() if self.peek() == '"' else None
            if not isinstance(key, str):
                raise BrokenJson("an object key is not a string")
            self._expect(":")
            yield key
            if not self._accept(","):
                self._expect("}")
                return

    def items(self) -> Iterator[Any]:
        """Yield the values of an array."""
        self._expect("[")
        if self._accept("]"):
            return
        while True:
            yield self.value()
            if not self._accept(","):
                self._expect("]")
                return

    def value(self) -> Any:
        """Return the next value, or `Unreadable` if it cannot be parsed. Raises `BrokenJson`."""
        self.peek()
        self._start = self._at
        try:
            found, end = _DECODER.raw_decode(self._text, self._at)
        except (ValueError, RecursionError):
            return self._read_slowly()
        if self._text[end : end + 1] in ("", ".", "e", "E"):
            # The number may continue beyond the buffer.
            return self._read_slowly()
        self._at = end
        return found if end - self._start <= self._limit else self._too_large()

    def skip(self) -> None:
        """Skip a value without parsing it."""
        self.peek()
        self._skip_value(limit=0)

    # --- Values that are broken, large, or not completely in the buffer

    def _read_slowly(self) -> Any:
        text = self._skip_value(limit=self._limit)
        if text is None:
            return self._too_large()
        if (
            len(text) > DENSITY_CHECK_FROM
            and text.count("[") + text.count("{") > len(text) / MIN_CHARACTERS_PER_BRACKET
        ):
            return Unreadable("too many lists and objects for a message")
        try:
            found, end = _DECODER.raw_decode(text)
        except RecursionError:
            return Unreadable("nested too deeply")
        except ValueError as error:
            return Unreadable(getattr(error, "msg", None) or str(error))
        return found if end == len(text) else Unreadable(f"not valid JSON after character {end:,}")

    def _too_large(self) -> Unreadable:
        return Unreadable(f"more than {self._limit:,} characters of JSON")

    def _skip_value(self, *, limit: int) -> str | None:
        """Skip the value and return its text; None if it exceeds the limit."""
        end = _ValueEnd()
        while not end.find(self._text, self._at):
            if end.at - self._at > limit:
                self._discard(end.at)
                end.at, limit = 0, -1
            seen = end.at - self._at
            if not self._read_more():
                raise BrokenJson("unexpected end of file")
            end.at = self._at + seen
        text = self._text[self._at : end.at]
        self._start = self._at
        self._at = end.at
        return text.rstrip(" \t\n\r") if limit >= 0 and len(text) <= limit else None

    # --- The buffer

    def _accept(self, character: str) -> bool:
        """Return whether the next character is the given one, and skip it then."""
        if self.peek() != character:
            return False
        self._at += 1
        return True

    def _expect(self, character: str) -> None:
        if not self._accept(character):
            found = self.peek()
            raise BrokenJson(f"expected {character!r}, found {found!r}" if found else "unexpected end of file")

    def _discard(self, until: int) -> None:
        self._bytes_before += _count_bytes(self._text[:until])
        self._text = self._text[until:]
        self._at = self._start = 0

    def _read_more(self) -> bool:
        """Extend the buffer and drop what was parsed; the buffer at least doubles, so that a large value stays
        cheap.
        """
        if self._is_at_end:
            return False
        self._discard(self._at)
        chunk = self._read(max(BUFFER_BYTES, len(self._text)))
        self._is_at_end = not chunk
        self._text += self._decode_bytes(chunk, self._is_at_end)
        return True


class _ValueEnd:
    """Search for the end of a value, by its quotes and brackets alone, across successive parts of a text."""

    def __init__(self) -> None:
        self.at = -1
        self._depth = 0
        self._in_text = False

    def find(self, text: str, start: int) -> bool:
        """Continue the search; return False if the text ends before the value does."""
        at = max(self.at, start)
        while True:
            pattern = _IN_TEXT if self._in_text else _NESTED if self._depth else _OUTSIDE
            found = pattern.search(text, at)
            if found is None:
                self.at = len(text)
                return False
            character, at = found[0], found.end()
            if character == "\\":
                if at == len(text):
                    self.at = at - 1
                    return False
                at += 1
                continue
            if character == '"':
                self._in_text = not self._in_text
            elif character in "{[":
                self._depth += 1
            elif self._depth:
                self._depth -= 1
            else:
                # The comma or bracket of the enclosing value.
                self.at = at - 1
                return True
            if not self._in_text and not self._depth:
                self.at = at
                return True


def _count_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


def _read_int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"contains a number of {len(text):,} digits")
    return int(text)


def _read_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("contains a number that is too large")
    return number


def _refuse_constant(name: str) -> float:
    raise ValueError(f"contains {name}, which is not a number")


# Control characters in a string are invalid but harmless.
_DECODER = json.JSONDecoder(strict=False, parse_int=_read_int, parse_float=_read_float, parse_constant=_refuse_constant)
