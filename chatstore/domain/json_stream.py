"""A JSON text read value by value: held in memory is one buffer and one value.

The standard library's decoder reads each value, as fast as any and without a crash: it refuses
what is nested too deeply. A value that cannot be read is passed over by its quotes and brackets,
so that what comes after it can be.
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

MOST_DIGITS = 20
"""Of a whole number: 64 bits and a sign."""

CROWDED_FROM = 1024 * 1024
CHARACTERS_A_BRACKET = 25
"""A value of over a megabyte has this many characters for each opening bracket, or it is made to
fill memory: `[],` takes sixty bytes. The users of a reaction, which a message has thousands of,
are 250 characters each."""

_SPACE = re.compile(r"[ \t\n\r]*")
_OUTSIDE = re.compile(r'["{}\[\],]')
_NESTED = re.compile(r'["{}\[\]]')
_IN_TEXT = re.compile(r'["\\]')


class BrokenJson(ValueError):
    """The text is no JSON from here on; what comes after cannot be found."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """In the place of a value that could not be read; what comes after it can be."""

    reason: str


class JsonStream:
    """Reads a JSON text from `read(size)`, as a binary file has it.

    limit: characters of one value; a larger one is passed over.
    """

    def __init__(self, read: Callable[[int], bytes], *, limit: int) -> None:
        self._read = read
        self._limit = limit
        # What is no UTF-8 becomes lone surrogates: it spoils the text that it stands in, no more.
        self._decode_bytes = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
        self._text = ""
        self._at = 0
        self._start = 0
        self._bytes_before = 0
        self._is_at_end = False

    @property
    def position(self) -> int:
        """The byte (without a byte order mark) at which the value that was last read begins."""
        return self._bytes_before + _count_bytes(self._text[: self._start])

    def peek(self) -> str:
        """Return the next character that is no space, "" at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text) or not self._read_more():
                return self._text[self._at : self._at + 1]

    def members(self) -> Iterator[str]:
        """Return the keys of an object, each before its value, which the caller must read or skip."""
        self._take("{")
        if self._passes("}"):
            return
        while True:
            key = self.value() if self.peek() == '"' else None
            if not isinstance(key, str):
                raise BrokenJson("a key of an object is no text")
            self._take(":")
            yield key
            if not self._passes(","):
                self._take("}")
                return

    def items(self) -> Iterator[Any]:
        """Return the values of an array."""
        self._take("[")
        if self._passes("]"):
            return
        while True:
            yield self.value()
            if not self._passes(","):
                self._take("]")
                return

    def value(self) -> Any:
        """Read a value; `Unreadable` where that is impossible. Raises `BrokenJson`."""
        self.peek()
        self._start = self._at
        try:
            found, end = _DECODER.raw_decode(self._text, self._at)
        except (ValueError, RecursionError):
            return self._read_slowly()
        if self._text[end : end + 1] in ("", ".", "e", "E"):
            # A number may go on behind what has been read.
            return self._read_slowly()
        self._at = end
        return found if end - self._start <= self._limit else self._too_large()

    def skip(self) -> None:
        """Pass over a value without reading it."""
        self.peek()
        self._pass_value(limit=0)

    # --- Values that are broken, large, or not yet in the buffer

    def _read_slowly(self) -> Any:
        text = self._pass_value(limit=self._limit)
        if text is None:
            return self._too_large()
        if len(text) > CROWDED_FROM and text.count("[") + text.count("{") > len(text) / CHARACTERS_A_BRACKET:
            return Unreadable("it has more lists and objects than any message")
        try:
            found, end = _DECODER.raw_decode(text)
        except RecursionError:
            return Unreadable("it is nested too deeply")
        except ValueError as error:
            return Unreadable(getattr(error, "msg", None) or str(error))
        return found if end == len(text) else Unreadable(f"it is no JSON after its character {end:,}")

    def _too_large(self) -> Unreadable:
        return Unreadable(f"it is over {self._limit:,} characters of JSON")

    def _pass_value(self, *, limit: int) -> str | None:
        """Move behind the value and return its text; None when that is longer than the limit."""
        end = _ValueEnd()
        while not end.find(self._text, self._at):
            if end.at - self._at > limit:
                self._drop(end.at)
                end.at, limit = 0, -1
            seen = end.at - self._at
            if not self._read_more():
                raise BrokenJson("it ends too early")
            end.at = self._at + seen
        text = self._text[self._at : end.at]
        self._start = self._at
        self._at = end.at
        return text.rstrip(" \t\n\r") if limit >= 0 and len(text) <= limit else None

    # --- The buffer

    def _passes(self, character: str) -> bool:
        """Whether the next character is that one; it is passed then."""
        if self.peek() != character:
            return False
        self._at += 1
        return True

    def _take(self, character: str) -> None:
        if not self._passes(character):
            found = self.peek()
            raise BrokenJson(f"{found!r} stands where {character!r} must" if found else "it ends too early")

    def _drop(self, until: int) -> None:
        self._bytes_before += _count_bytes(self._text[:until])
        self._text = self._text[until:]
        self._at = self._start = 0

    def _read_more(self) -> bool:
        """Add to the buffer, without what was passed; at least doubled, so that a large value is cheap."""
        if self._is_at_end:
            return False
        self._drop(self._at)
        chunk = self._read(max(BUFFER_BYTES, len(self._text)))
        self._is_at_end = not chunk
        self._text += self._decode_bytes(chunk, self._is_at_end)
        return True


class _ValueEnd:
    """Looks for the end of a value, by its quotes and brackets alone, from one part of a text to the next."""

    def __init__(self) -> None:
        self.at = -1
        self._depth = 0
        self._in_text = False

    def find(self, text: str, start: int) -> bool:
        """Go on; False when the text ends before the value does."""
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
                # The comma or bracket of what is around it.
                self.at = at - 1
                return True
            if not self._in_text and not self._depth:
                self.at = at
                return True


def _count_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


def _read_int(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"it has a number of {len(text):,} digits")
    return int(text)


def _read_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("it has a number that is too large")
    return number


def _refuse_constant(name: str) -> float:
    raise ValueError(f"it has {name}, which is no number")


# Control characters within a text are wrong, and harmless.
_DECODER = json.JSONDecoder(strict=False, parse_int=_read_int, parse_float=_read_float, parse_constant=_refuse_constant)
