"""File names that an agent may have made up to fool git, a file system, or a terminal."""

from __future__ import annotations

import re
import unicodedata

_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_NTFS = re.compile(r"(?:\.git|git~[0-9]+)[ .]*(?::.*)?", re.IGNORECASE | re.DOTALL)
_MODULES = re.compile(r"\.gitmodules[ .]*(?::.*)?|g[a-z0-9]{0,5}~[0-9].*", re.IGNORECASE | re.DOTALL)


def is_git_name(name: str) -> bool:
    """Whether a name is `.git`, or one that some file system takes for it: other case, dropped characters, streams."""
    plain = _IGNORED_BY_HFS.sub("", name)
    return any(_NTFS.fullmatch(part) is not None for part in (*name.split("\\"), *plain.split("\\")))


def is_forbidden_link(name: str) -> bool:
    """Whether git refuses a symbolic link of this name: one that stands for its list of submodules."""
    return _MODULES.fullmatch(_IGNORED_BY_HFS.sub("", name)) is not None


def is_text(name: str) -> bool:
    """Whether a name that the file system gave is UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(path: str) -> str:
    """A path as text that is safe on a terminal and in JSON: control and odd characters as escapes."""
    return "".join(_shown(character) for character in path)


def _shown(character: str) -> str:
    if character.isprintable() or character == " ":
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if unicodedata.category(character) == "Cs" or code > 0xFF:
        return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
    return f"\\x{code:02x}"
