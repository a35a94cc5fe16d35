"""The encoding of SSH messages (RFC 4251): 32-bit numbers, and strings with their length in front."""

from adumbra.errors import InvalidInput

LONGEST = 2**20  # bytes of one string; keys and signatures are far shorter


def uint32(number: int) -> bytes:
    """Four bytes, the highest first."""
    return number.to_bytes(4, "big")


def string(content: bytes) -> bytes:
    """The bytes with their length in front."""
    return uint32(len(content)) + content


def mpint(number: int) -> bytes:
    """A number that is not negative, in as few bytes as its sign bit allows."""
    return string(number.to_bytes(number.bit_length() // 8 + 1, "big") if number else b"")


class Reader:
    """Takes fields off the front of a message; whatever does not fit raises `InvalidInput`."""

    def __init__(self, content: bytes, what: str) -> None:
        self._content, self._at, self._what = content, 0, what

    def take(self, count: int) -> bytes:
        """The next bytes."""
        if count > LONGEST or self._at + count > len(self._content):
            self.fail()
        self._at += count
        return self._content[self._at - count : self._at]

    def uint32(self) -> int:
        """The next number."""
        return int.from_bytes(self.take(4), "big")

    def string(self) -> bytes:
        """The next string."""
        return self.take(self.uint32())

    def text(self) -> str:
        """The next string, of printable ASCII."""
        found = self.string()
        if not (found.isascii() and found.decode("ascii").isprintable()):
            self.fail()
        return found.decode("ascii")

    def mpint(self) -> int:
        """The next number that is not negative, in its shortest form."""
        found = self.string()
        number = int.from_bytes(found, "big")
        if mpint(number) != string(found):
            self.fail()
        return number

    def end(self) -> None:
        """Nothing may follow."""
        if self._at != len(self._content):
            self.fail()

    def fail(self) -> None:
        """Refuse the message."""
        raise InvalidInput(f"{self._what}: cannot be read; it is damaged or of another kind")
