"""Takes credentials out of text before it is shown, logged or stored.

Two rules. What stands as a credential in an address is removed, whoever it belongs to. And the value of every secret
that this process knows is masked, wherever it stands and however it is written: servers repeat the key that they
refuse. Known are the secrets of the environment (``SECRET_NAME``, and passwords in addresses), and those that were
handed to ``keep_secret``.

Text is masked before it is cut: half a key would not be found any more.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

MASK = "***"
# Shorter ones are not masked: "test" or "none" for a server that wants no key would take words out of every text.
SHORTEST = 6
# Letters only or digits only, and shorter than this: as likely a word or a number ("postgres", "123456"), so it is
# masked only where it stands alone.
PLAIN = 12
# What part of a secret is taken for it: half, but no less than this; less only where a text ends or is cut.
LEAST_PART = 8
# user:password@ or token@ between the scheme and the host.
CREDENTIALS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/\s?#]*@")
# A password that somebody forgot to escape: everything up to the last @ before a host.
SLASHED = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^\s?#@]*:[^\s?#]*@(?=[^/\s]+)")
# Brackets stand in no user of an address, but around one that is quoted.
IN_ADDRESS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<user>[^/\s?#:@\[\]<>\"]*)(?::(?P<password>[^/\s?#]*))?@"
)
# Keys, tokens, passwords and what they are part of; not the names of files (PGPASSFILE) and sockets.
SECRET_NAME = re.compile(
    r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|AUTH|AUTH_STRING|CONNECTION_STRING|SAS|CUSTOM_HEADERS)$",
    re.IGNORECASE,
)
# Within an address, a connection string or JSON: password=…, AccountKey=…, "secret": "…".
ASSIGNED = re.compile(
    r"(?:pass(?:word|wd)?|pwd|token|secret|key|sig(?:nature)?|authorization)[\"']?\s*[=:]\s*[\"']?"
    r"(?:(?:Bearer|Basic)\s+)?(?P<value>[^\s&;,\"']+)",
    re.IGNORECASE,
)
# How a message says that it was cut.
IS_CUT = re.compile(r"\s*(?:$|…|\.\.\.|\[truncated)")
# JSON in JSON escapes the backslash again.
BACKSLASHES = r"\\{1,7}"
# White space, raw or escaped, that a line break may have put into a secret.
BREAK = rf"(?:\s|{BACKSLASHES}[nrt])*"
_kept: set[str] = set()


def without_credentials(text: str) -> str:
    """The text with every ``scheme://user:password@host`` replaced by ``scheme://host``."""
    return CREDENTIALS.sub(r"\g<scheme>", text)


def shown_place(text: str) -> str:
    """An address, a connection string or a path without any secret in it: ``password=***``."""
    text = CREDENTIALS.sub(r"\g<scheme>", SLASHED.sub(r"\g<scheme>", text))
    return masked(ASSIGNED.sub(lambda found: found[0].removesuffix(found["value"]) + MASK, text))


def has_credentials(text: str) -> bool:
    return CREDENTIALS.search(text) is not None


def keep_secrets_of(settings: Mapping[str, str]) -> None:
    """Mask the secrets among settings that were read from elsewhere, by their names in the environment."""
    _kept.update(_secrets_of(settings.items()))


def keep_secret(*values: str | None) -> None:
    """Mask these values from now on: secrets that are no variable of the environment."""
    _kept.update(part for value in values if value for part in (value, *_within(value)))


def keep_credentials(address: str) -> None:
    """Mask the password of an address from now on, also where a server repeats it alone."""
    _kept.update(_in_addresses(address))


def masked(text: str) -> str:
    """A message without the credentials of addresses, and with ``***`` for every known secret.

    A secret is found as it is, and as JSON, URLs, HTML and Python escape it, in base64 (also within what was encoded
    with it, as in ``Basic``), over a line break, and if only one half of it is there, or its ends at a cut.
    """
    return masked_output(without_credentials(text), plain=True)


def masked_output(text: str, *, plain: bool = False) -> str:
    """A page, table or other output, masked once more on its way out.

    Args:
        plain: also mask secrets that are a plain word or number. In output they may be a name in JSON, or a figure.
    """
    return masker(plain=plain)(text)


def masker(*, plain: bool = False) -> Callable[[str], str]:
    """``masked_output`` for many texts, by what is secret now: looking that up takes longer than a short text."""
    known = _known(frozenset(os.environ.items()), frozenset(_kept))
    secrets = [secret for secret in known if plain or not secret.is_plain]

    def mask(text: str) -> str:
        for secret in secrets:
            text = secret.mask(text)
        # After the whole ones: the end of one may be the whole of another.
        for secret in secrets:
            text = secret.mask_rest(text)
        return text

    return mask


def mask_error(error: BaseException) -> None:
    """Mask the messages of an error of a library and of its causes, which go to logs with their traceback."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if any(isinstance(one, str) and masked(one) != one for one in cause.args):
            cause.args = tuple(masked(one) if isinstance(one, str) else one for one in cause.args)
        cause = cause.__cause__ or cause.__context__


@functools.lru_cache(maxsize=8)
def _known(environment: frozenset[tuple[str, str]], kept: frozenset[str]) -> tuple[_Secret, ...]:
    """The secrets of an environment, the longest first: one may be part of another."""
    stripped = {value.strip() for value in (*kept, *_secrets_of(environment))}
    return tuple(map(_Secret, sorted((one for one in stripped if len(one) >= SHORTEST), key=lambda s: (-len(s), s))))


def _secrets_of(settings: Iterable[tuple[str, str]]) -> set[str]:
    """What is secret in settings, by their names and by the addresses in them."""
    values: set[str] = set()
    for name, value in settings:
        if SECRET_NAME.search(name) and not _is_file(value):
            values.update((value, *_within(value)))
            if ":" in value and "://" not in value:
                # PREFECT_API_AUTH_STRING: user:password.
                values.add(value.partition(":")[2])
        else:
            values.update(_in_addresses(value))
    return values


def _is_file(value: str) -> bool:
    """Whether a variable names the file of a key (PGSSLKEY) in place of the key."""
    return value.startswith(("/", "~", "./")) and Path(value).expanduser().exists()


def _within(value: str) -> Iterator[str]:
    """What is secret in a longer setting: an address, a connection string, headers as JSON."""
    yield from _in_addresses(value)
    yield from (found["value"] for found in ASSIGNED.finditer(value))
    try:
        content = json.loads(value)
    except (ValueError, RecursionError):
        return
    if isinstance(content, dict):
        # Of a header, "Bearer …".
        yield from (str(one).rpartition(" ")[2] for one in content.values())


def _in_addresses(value: str) -> Iterator[str]:
    if "@" in value:
        for found in IN_ADDRESS.finditer(value):
            # Alone, a user is a token (https://TOKEN@host), but a database's is a name.
            is_token = found["password"] is None and found["scheme"].lower() in ("http", "https")
            secret = found["user"] if is_token else found["password"] or ""
            yield from {secret, unquote(secret)}
    if "password=" in value:
        yield from (found["value"] for found in ASSIGNED.finditer(value))


class _Secret:
    """Finds one secret in texts."""

    def __init__(self, value: str) -> None:
        self.value = value
        self.is_plain = is_plain = len(value) < PLAIN and (value.isalpha() or value.isdecimal())
        shapes = [_shapes(character) for character in value]
        # What a match starts with, and how much of the secret has to follow.
        self._least = len(value) if is_plain else min(len(value), max(LEAST_PART, (len(value) + 1) // 2))
        start = BREAK.join(shapes[: self._least if is_plain else SHORTEST])
        self._start = re.compile(rf"(?<![\w])(?<!\d[.,]){start}(?![\w])(?![.,]\d)" if is_plain else start)
        self._shapes = [] if is_plain else [re.compile(BREAK + shape) for shape in shapes[SHORTEST:]]
        encoded = _in_base64(value)
        others = [] if is_plain else [BREAK.join(shapes[-self._least :])]
        # With the characters that hold the last bits of the secret, if nothing follows it.
        others += [BREAK.join(map(re.escape, one)) + r"(?:[\w+/-]?=+)?" for one in encoded]
        self._others = re.compile("|".join(others)) if others else None

    def mask(self, text: str) -> str:
        """The text with the mask in place of it, of its first half, and of its ends at a cut."""
        parts, done = [], 0
        while (found := self._start.search(text, done)) is not None:
            end, length = found.end(), SHORTEST if self._shapes else self._least
            for shape in self._shapes:
                following = shape.match(text, end)
                if following is None:
                    break
                end, length = following.end(), length + 1
            cut = IS_CUT.match(text, end)
            if length >= self._least or cut is not None:
                parts += [text[done : found.start()], MASK]
                done = end
                if cut is not None:
                    parts.append(cut.group())
                    done = cut.end() + self._ends_with(text, cut.end())
            else:
                parts.append(text[done : found.start() + 1])
                done = found.start() + 1
        return "".join((*parts, text[done:]))

    def mask_rest(self, text: str) -> str:
        """The same for its second half alone, and for what base64 makes of it."""
        return text if self._others is None else self._others.sub(MASK, text)

    def _ends_with(self, text: str, start: int) -> int:
        """How many of a secret's last characters follow a cut in its middle."""
        return next((n for n in range(len(self.value) - 1, 0, -1) if text.startswith(self.value[-n:], start)), 0)


def _shapes(character: str) -> str:
    """A pattern for one character, as it is and as other languages escape it."""
    ways = [re.escape(character)]
    utf8 = character.encode("utf-8", "surrogatepass")
    if not character.isalnum() or not character.isascii():
        percents = "".join(f"%(?:25)?{byte:02X}" for byte in utf8)
        ways += [f"(?i:{percents})", "".join(rf"(?i:{BACKSLASHES}x{byte:02x})" for byte in utf8)]
        ways += [rf"&\#0*{ord(character)};", rf"(?i:&\#x0*{ord(character):x};)", BACKSLASHES + re.escape(character)]
        units = character.encode("utf-16-be", "surrogatepass").hex()
        ways.append("".join(rf"(?i:{BACKSLASHES}u{units[i : i + 4]})" for i in range(0, len(units), 4)))
        named = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}
        ways += [named[character]] if character in named else []
        ways += [r"\+"] if character == " " else []
    # The shortest last: it may be the beginning of another.
    return f"(?:{'|'.join(reversed(ways))})" if len(ways) > 1 else ways[0]


def _in_base64(value: str) -> Iterator[str]:
    """What base64 makes of a secret wherever it stands in what is encoded, but for the characters at its ends."""
    content = value.encode("utf-8", "surrogatepass")
    for before in range(3):
        coded = base64.b64encode(bytes(before) + content).decode().rstrip("=")
        # The first characters hold bits of what stands before, the last of what stands behind.
        first = (0, 2, 3)[before]
        last = len(coded) - (1 if (before + len(content)) % 3 else 0)
        inner = coded[first:last]
        yield inner
        if set("+/") & set(inner):
            yield inner.replace("+", "-").replace("/", "_")
