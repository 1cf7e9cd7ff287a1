"""Exact names in a text: paths, addresses, hashes, ids, versions and numbers with a unit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from .secrets import has_secret, names_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_APART: Final = r"\s\"'`<>()\[\]{}|;“”‘’«»"  # noqa: RUF001 - all that quotes
_WORD: Final = re.compile(rf"[^{_APART}]+")
_TELLING: Final = re.compile(rf"(?<![^{_APART}])(?:[^{_APART}0-9/\\@.]++|\.(?![A-Za-z]))*+[0-9/\\@.][^{_APART}]*+")
"""A word that may be an exact name or a number: it has a digit, a slash, an at sign or a dot within."""
_PARTS: Final = re.compile(r"=|,(?![0-9]{3}(?![0-9]))")
_TRAIL: Final = ".,:;!?*"
_LONGEST: Final = 1_024
_SHORTEST: Final = 3

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s]{2,}+")
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://")
_HOST: Final = re.compile(
    r"(?://)?(?:\w[\w-]{0,62}\.){1,8}([A-Za-z]{2,24})(?::[0-9]{1,5})?([/?#][^\s]*+)?"
    r"|(?:(?://)?[0-9]{1,3}(?:\.[0-9]{1,3}){3}|localhost)(?::[0-9]{1,5})?[/?#][^\s]*+"
)
"""A host without a scheme, also one that a path follows."""
_TOP: Final = frozenset(("com", "org", "net", "edu", "gov", "mil", "biz", "xyz", "onion", "io", "ai"))
"""What a host ends with, and nothing else that a summary names …"""
_TOP_BEFORE_PATH: Final = frozenset(
    (
        *("io", "ai", "co", "me", "tv", "cc", "us", "uk", "eu", "de", "fr", "ch", "at", "nl", "be", "it", "es", "pt"),
        *("pl", "cz", "se", "no", "dk", "fi", "ru", "ua", "cn", "jp", "kr", "in", "au", "nz", "ca", "br", "mx", "za"),
        *("tr", "il", "ir", "hk", "sg", "tw", "id", "vn", "tk", "ml", "ga", "cf", "gq", "to", "ws", "su", "ly", "gg"),
        *("info", "name", "dev", "app", "cloud", "site", "online", "shop", "store", "tech", "top", "live", "link"),
        *("click", "page", "pages", "web", "host", "space", "world", "news", "blog", "wiki", "test", "example"),
        *("local", "internal", "arpa", "int", "zip", "mov", "icu", "pro", "club", "vip", "work", "life", "fun"),
    )
)
"""… and what it ends with where a path follows."""
_SCHEME: Final = re.compile(
    r"(?i)(?<![\w./-])(?:(?:java|vb|live)script[ \t]*:[ \t]*(?=[^\s.,;][^\n]{0,200}?[(=;%`])"
    r"|data:(?=[a-z]+/[a-z0-9.+-]{1,80}[;,]|[,;])"
    r"|(?:mailto|tel|sms|magnet|blob|view-source|intent|jar|file|ssh|git|about|chrome|callto|urn):"
    r"(?=[^\s.,;:])(?!//))[^\s\"'<>)\]]{1,200}"
)
_MAIL: Final = re.compile(r"[\w.+-]{1,64}@(?:[\w-]{1,63}\.)+[A-Za-z]{2,24}(:[^\s]+)?")
"""The address of a person, or with a path that of a repository."""
_SHORT: Final = re.compile(
    r"(?P<hash>(?:(?:sha1|sha256|sha512|md5|blake2b)[:-])?(?=[0-9]*[A-Fa-f])(?:[0-9a-f]{7,128}|[0-9A-F]{7,128}))"
    r"|(?P<ticket>([A-Z][A-Z0-9]{1,9})-[0-9]{1,9}|#[0-9]{1,8}|[A-Z]{2,6}[0-9]{5,12})"
    r"|(?P<version>(?:v?[0-9]+(?:\.[0-9]+){2,5}|v[0-9]+(?:\.[0-9]+)+)(?:[-+][0-9A-Za-z.+-]+)?)"
    r"|(?P<uuid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"
    r"|(?P<opaque>[A-Za-z][A-Za-z0-9]*[_-][A-Za-z0-9_-]{3,62})"
)
"""What a word with digits and without slashes may name; `opaque` if more than three of them are digits."""
_ROOTED: Final = re.compile(
    r"(?:(?:~|\.{1,2}|[A-Za-z]:)?/|(?:[A-Za-z]:|\.{1,2}|\\)\\)[\w.@+~%$-]+(?:[/\\]+[\w.@+~%$-]+)*[/\\]?"
)
_FILE: Final = re.compile(r"(?:[\w.@+~%$-]+[/\\])*[\w@+~%$-][\w.@+~%$-]*\.([A-Za-z][A-Za-z0-9]{0,9})")
_FOLDER: Final = re.compile(r"(?:[\w.@+~%$-]+[/\\])+")
_LINE: Final = re.compile(r":[0-9]")
_LETTER: Final = re.compile(r"[A-Za-z]")
_DIGIT: Final = re.compile(r"[0-9]")
_NO_TICKETS: Final = frozenset(
    ("UTF", "SHA", "ISO", "RFC", "GPT", "AES", "RSA", "MD", "HTTP", "IEEE", "PEP", "ECMA", "X", "UTC", "GMT", "CP")
)
_ENDINGS: Final = frozenset(
    (
        *("py", "pyi", "ipynb", "js", "mjs", "cjs", "jsx", "ts", "tsx", "vue", "svelte", "md", "mdx", "rst", "txt"),
        *("json", "jsonl", "ndjson", "toml", "yaml", "yml", "ini", "cfg", "conf", "env", "lock", "log", "rs", "go"),
        *("c", "h", "cc", "cpp", "hpp", "cs", "java", "kt", "kts", "scala", "rb", "php", "pl", "lua", "swift", "m"),
        *("mm", "r", "jl", "ex", "exs", "erl", "hs", "ml", "clj", "sh", "bash", "zsh", "fish", "ps1", "bat", "sql"),
        *("db", "sqlite", "html", "htm", "css", "scss", "less", "xml", "svg", "csv", "tsv", "parquet", "pdf", "png"),
        *("jpg", "jpeg", "gif", "webp", "ico", "gz", "zip", "tar", "tgz", "bz2", "xz", "zst", "whl", "jar", "so"),
        *("dll", "exe", "bin", "dat", "proto", "graphql", "tf", "tfvars", "gradle", "cmake", "mk", "dockerfile"),
        *("patch", "diff", "pem", "crt", "cer", "key"),
    )
)
_PRODUCT: Final = re.compile(r"[A-Z][A-Za-z0-9]*\.(?:js|ts|io|py)")

_NUMBER: Final = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})++(?![0-9])(?:\.[0-9]++)?|[0-9]++(?:\.[0-9]++)?")
_AMOUNT: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_ALONE: Final = re.compile(rf"(?<![A-Za-z_0-9.,])(?:{_NUMBER.pattern})")
_UNITS: Final = (
    "ms|µs|us|ns|s|sec|secs|seconds?|min|mins|minutes?|h|hours?|days?|weeks?|months?|years?|%|percent|kB|KB|MB|GB|TB|KiB"
    "|MiB|GiB|TiB|bytes?|bits?|tokens?|px|Hz|kHz|MHz|GHz|kW|W|kWh|V|mV|A|mA|km|m|cm|mm|kg|g|mg|l|ml|°C|°F|K|€|\\$|£|USD"
    "|EUR|GBP|CHF|JPY|rps|qps|users?|rows?|requests?|items?|files?|lines?|retries|attempts|times"
)
_MEASURE: Final = re.compile(
    r"(?<![\w.,/:;#\[\x1b-])(?:([$€£])[ ]?)?(?:[0-9]{1,3}(?:,[0-9]{3})++|[0-9]{1,30})(?:\.[0-9]{1,30})?+"
    rf"(?:[ ]?({_UNITS})(?!\w))?+"
)
_PLACES: Final = 4_096
"""A name that stands in longer ones so often in a row is not looked for any further."""

_SECRET_NEAR: Final = 4
_SIGNS: Final = ":=>-.,"
_MAY_BE_SECRET: Final = frozenset(("hash", "id", "url"))
_WITH_NUMBERS: Final = frozenset(("path", "version"))


class Name(NamedTuple):
    """An exact name in a text."""

    text: str
    kind: str


class Found(NamedTuple):
    """What exact names a text holds, each once, in the order of its words."""

    names: tuple[Name, ...]
    numbers: frozenset[str]
    """All numbers, as `plain_number` writes them."""


def found_in(text: str) -> Found:
    """The exact names and numbers of a text; what looks like a secret is left out."""
    names: dict[str, Name] = {}
    numbered: list[str] = []
    near = _Near(text)
    for word in dict.fromkeys(_TELLING.findall(text)):
        if word.isdecimal():
            numbered.append(word)
            continue
        is_plain = False
        for part in _parts(word):
            kind = kind_of(part)
            if not kind:
                is_plain = True
                continue
            if kind in _MAY_BE_SECRET and near.is_secret(part, word):
                continue
            names.setdefault(part, Name(part, kind))
            if kind in _WITH_NUMBERS:
                numbered.append(part)
        if is_plain:  # once, not for each of its parts: a word may have hundreds
            numbered.append(word)
    numbers = set(_NUMBER.findall(" ".join(numbered)))
    return Found(tuple(names.values()), frozenset(map(plain_number, numbers)))


class _Near:
    """What stands before the words of a text; it is only read when it is asked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words: list[str] = []
        self._places: dict[str, int] = {}

    def is_secret(self, part: str, word: str) -> bool:
        """Whether a name looks like a secret, or what stands before it, where it comes first, says that it is one."""
        if not self._words:
            self._words = words = _WORD.findall(self._text)
            self._places = dict(zip(reversed(words), range(len(words) - 1, -1, -1), strict=True))
        place = self._places.get(word, 0)
        before = (self._words[at] for at in range(place - 1, max(-1, place - _SECRET_NEAR), -1))
        announced = next((word for word in before if word.strip(_SIGNS)), "")
        return names_secret(word.removesuffix(part)) or names_secret(announced) or has_secret(part)


def _parts(word: str) -> Iterable[str]:
    """What a word may name: it itself without punctuation, or what stands between commas and equals signs."""
    if len(word) > _LONGEST:
        return ()
    address = _ADDRESS.search(word) if "://" in word else None
    if address is not None:
        return (word[address.start() :].rstrip(_TRAIL),)
    if "," in word or "=" in word:
        return [_bare(part) for part in _PARTS.split(word)]
    return (_bare(word),)


def _bare(word: str) -> str:
    """A word without punctuation, and without the number of a line."""
    bare = word.strip("*").rstrip(_TRAIL)
    if ":" in bare and not bare.startswith("sha"):
        line = _LINE.search(bare)
        return bare if line is None or _is_host(bare) else bare[: line.start()]
    return bare


def kind_of(word: str) -> str:
    """What a word names: `path`, `url`, `hash`, `id`, `version` or `email`; `""`: nothing exact."""
    if not _SHORTEST <= len(word) <= _LONGEST or _AMOUNT.fullmatch(word):
        return ""
    if "://" in word:
        return "url" if _URL.fullmatch(word) else ""
    if "@" in word and (mail := _MAIL.fullmatch(word)) is not None:
        return "url" if mail[1] else "email"
    if ("." in word or word.startswith("localhost")) and _is_host(word):
        return "url"
    if "/" in word or "\\" in word:
        return "path" if _is_path(word) else ""
    return _short_kind(word)


def _is_host(word: str) -> bool:
    """Whether a word is an address without its scheme."""
    host = _HOST.fullmatch(word)
    if host is None:
        return False
    if host[1] is None or word.startswith(("www.", "WWW.", "//")):
        return True
    top = host[1].lower()
    return (top in _TOP and host[1] not in {"NET", "Net"}) or (host[2] is not None and top in _TOP_BEFORE_PATH)


def schemes_in(text: str) -> Iterator[Name]:
    """The addresses of a text that no host follows, such as those of scripts and of data."""
    if ":" in text:
        yield from (Name(found[0].rstrip(_TRAIL), "url") for found in _SCHEME.finditer(text))


def _short_kind(word: str) -> str:
    """What a word without slashes names."""
    found = _SHORT.fullmatch(word)
    if found is not None and _DIGIT.search(word) is not None:
        group = found.lastgroup
        if group in {"hash", "version"}:
            return group
        if group == "ticket":
            return "" if found[3] in _NO_TICKETS else "id"
        if group == "uuid" or len(_DIGIT.findall(word)) > 3:  # noqa: PLR2004 - longer than a year's digits
            return "id"
    return "path" if "." in word and _is_path(word) else ""


def _is_path(word: str) -> bool:
    if _LETTER.search(word) is None:
        return False
    file = _FILE.fullmatch(word)
    if file is not None:
        has_folder = "/" in word or "\\" in word
        return has_folder or (file[1].lower() in _ENDINGS and _PRODUCT.fullmatch(word) is None)
    return _ROOTED.fullmatch(word) is not None or _FOLDER.fullmatch(word) is not None


def plain_number(text: str) -> str:
    """A number without what only makes it easier to read: `1,250` and `01250` are `1250`."""
    if text.isdecimal():
        return text.lstrip("0") or "0"
    whole, dot, rest = text.replace(",", "").partition(".")
    return f"{whole.lstrip('0') or '0'}{dot}{rest}"


def numbers_in(text: str) -> Iterator[str]:
    """The numbers of a text that are neither part of a name nor of a word, as `plain_number` writes them."""
    for word in dict.fromkeys(_WORD.findall(text)):
        for part in _parts(word) if _DIGIT.search(word) else ():
            if not kind_of(part):
                yield from map(plain_number, _ALONE.findall(part))


def measures_in(text: str) -> Iterator[Name]:
    """The numbers of a text that have a unit, a currency or thousands: exact enough to be kept."""
    if _DIGIT.search(text) is None:
        return
    for found in _MEASURE.finditer(text):
        if found[1] or found[2] or "," in found[0]:
            yield Name(found[0].strip(), "number")


def holds_name(text: str, name: str) -> bool:
    """Whether a text holds a name for itself, not as a part of a longer one: OPS-441 is not in OPS-4412."""
    return any(_stands_alone(text, at, at + len(name), parts=False) for at in _places(text, name))


def holds_part(text: str, name: str) -> bool:
    """As `holds_name`; the end of a path and a folder of it count, too."""
    return any(_stands_alone(text, at, at + len(name), parts=True) for at in _places(text, name))


def _places(text: str, name: str) -> Iterator[int]:
    at = text.find(name) if name else -1
    for _ in range(_PLACES):
        if at < 0:
            return
        yield at
        at = text.find(name, at + len(name))


def _stands_alone(text: str, start: int, end: int, *, parts: bool) -> bool:
    joins = "-@#$" if parts else "/\\-@#$"
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if before and _joined(before[-1], joins):
        return False
    if len(before) == 2 and before[1] in ".," and _is_word(before[0]):  # noqa: PLR2004 - two characters are looked at
        return False
    if after and _joined(after[0], joins):
        return False
    return not (len(after) == 2 and after[0] in ".,?#=&%+~" and _is_word(after[1]))  # noqa: PLR2004 - the same


def _joined(character: str, joins: str) -> bool:
    return character in joins or _is_word(character)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
