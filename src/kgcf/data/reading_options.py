"""What the user says about a source that its content cannot tell: header, comment lines, spaces to strip."""

import io
import re
from dataclasses import dataclass
from typing import Any, BinaryIO

from kgcf.errors import SettingsError

_BLOCK = 1 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Reading:
    """How a source of triples is taken; the default is as it stands."""

    header: bool | None = None  # whether a text file starts with a header; None: detected
    comment: str | None = None  # lines of a text file that begin with this are skipped
    strip: bool = False  # remove spaces around labels

    def __post_init__(self) -> None:
        if self.comment is not None and not self.comment.strip():
            raise SettingsError("The mark of comment lines is empty; give one such as '#'.")

    def is_comment(self, line: str) -> bool:
        """Whether a line of a text file is to be skipped; spaces before the mark do not matter."""
        return self.comment is not None and line.lstrip(" \ufeff").startswith(self.comment)

    def without_comments(self, stream: BinaryIO) -> BinaryIO:
        """The stream without its comment lines; the same stream where no mark is given."""
        if self.comment is None:
            return stream
        return io.BufferedReader(_WithoutComments(stream, self.comment), _BLOCK)


AS_IT_STANDS = Reading()


class _WithoutComments(io.RawIOBase):
    """Whole lines of a stream, block after block, without those that begin with a mark."""

    def __init__(self, stream: BinaryIO, mark: str) -> None:
        self._stream = stream
        self._pattern = re.compile(rb"^ *" + re.escape(mark.encode()) + rb"[^\n]*(\n|\Z)", re.MULTILINE)
        self._ready = b""
        self._started = False

    def readable(self) -> bool:
        """Yes: the buffer asks."""
        return True

    def readinto(self, target: Any) -> int:  # noqa: ANN401
        """Fill the buffer, at least in part."""
        while not self._ready:
            block = self._stream.read(_BLOCK)
            if not block:
                return 0
            self._ready = self._pattern.sub(b"", self._unmarked(block) + self._stream.readline())
        view = memoryview(target)
        count = min(len(view), len(self._ready))
        view[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _unmarked(self, block: bytes) -> bytes:
        """The block without a byte order mark, which would hide a comment in the first line."""
        first, self._started = not self._started, True
        return block.removeprefix(_BOM) if first else block
