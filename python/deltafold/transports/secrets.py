"""Secrets of a call, and their removal from every text that leaves it.

In: credentials of the caller: keys, headers, query values, users and passwords of URLs, and those
that a client holds.  Out: texts, exceptions and bytes without them.

Laws: a secret is found unchanged, percent-encoded, escaped, and in base64 at any alignment. Secrets
are collected only when a text has to be redacted. Names of headers and hosts stay readable.
"""

import json
import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar, cast
from urllib.parse import parse_qsl, quote, quote_plus, unquote, unquote_plus, urlsplit

from deltafold.contract.exceptions import MisuseError

T = TypeVar("T", bound=BaseException)

HARMLESS_HEADERS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "anthropic-beta",
        "anthropic-version",
        "connection",
        "content-length",
        "content-type",
        "host",
        "http-referer",
        "openai-beta",
        "referer",
        "user-agent",
        "x-title",
    }
)
"""Request headers without secrets; every other header may be a secret."""

HARMLESS_QUERY: Final = frozenset({"alt", "api-version", "beta", "limit", "pagesize"})
"""Query members without secrets; every other member may be a secret."""

_MIN_CHARACTERS: Final = 6
"""Shorter texts are words of ordinary messages; no key or usable password is shorter."""

_STAND_IN: Final = "***"
_QUERY_MEMBER: Final = re.compile("[^&;?]+")
# A value with other characters may hold a second query, which a client escaped or joined wrongly.
_HARMLESS_VALUE: Final = re.compile(r"[\w.:-]*", re.ASCII)
# Attributes of clients of HTTP packages and SDKs that hold credentials.
_KEY_MEMBERS: Final = ("api_key", "auth_token", "admin_api_key", "webhook_secret")
_HEADER_MEMBERS: Final = ("headers", "_headers", "_custom_headers", "_default_headers")
_QUERY_MEMBERS: Final = ("params", "_custom_query", "_default_query")
_ADDRESS_MEMBERS: Final = ("base_url", "_base_url", "_default_proxy", "_proxy")
_ESCAPE: Final = re.compile("%[0-9A-F]{2}")
_SCHEMES: Final = frozenset({"basic", "bearer", "token", "key", "apikey", "api-key"})
_HARMLESS_PREFIX: Final = re.compile(r"x-stainless-")
# Source: RFC 9110, section 5.5; a key is a token of ASCII characters at every provider.
_UNSENDABLE: Final = re.compile(r"[^\x20-\x7e]")
_UNSENDABLE_IN_HEADER: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")


def clean_key(key: str, origin: str) -> str:
    """Return a key without the white space around it, such as the line end of a file.

    Args:
        key: the key as it was given.
        origin: the argument or variable of the key, for the error.

    Raises:
        MisuseError: the key has a character that cannot be sent; the message does not show the key.
    """
    stripped = key.strip()
    wrong = _UNSENDABLE.search(stripped)
    if wrong is not None:
        raise MisuseError(
            f"{origin}: character {wrong.start() + 1} of the key is U+{ord(wrong[0]):04X}, which "
            "no header can carry; check where the key was copied from"
        )
    return stripped


def clean_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the caller's headers with lower-case names and without white space around values.

    Raises:
        MisuseError: a value holds a control character; the message names the header alone.
    """
    cleaned: dict[str, str] = {}
    for name, value in headers.items():
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a hook's
            raise MisuseError(
                f"headers: the value of {name} must be str, not {type(value).__name__}"
            )
        stripped = value.strip()
        wrong = _UNSENDABLE_IN_HEADER.search(stripped)
        if wrong is not None:
            raise MisuseError(
                f"headers: character {wrong.start() + 1} of the value of {name} is "
                f"U+{ord(wrong[0]):04X}, which no header can carry"
            )
        cleaned[name.lower()] = stripped
    return cleaned


def shown_url(url: str) -> str:
    """Return a URL without its user, its query and its fragment, for messages.

    >>> shown_url("https://user:password@host:8443/v1?key=k")
    'https://host:8443/v1'
    """
    scheme, mark, rest = re.split(r"[?#]", url, maxsplit=1)[0].partition("://")
    if not mark:
        scheme, rest = "", scheme
    # A password may hold a slash that should have been escaped.
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


def shown_target(target: str) -> str:
    """Return the target of a request with `***` for the secrets of its query, for logs.

    >>> shown_target("/v1beta/models/m:generateContent?key=k&alt=sse")
    '/v1beta/models/m:generateContent?key=***&alt=sse'
    """
    path, mark, query = target.partition("?")
    return f"{path}{mark}{_QUERY_MEMBER.sub(_shown_member, query)}"


def _shown_member(member: re.Match[str]) -> str:
    name, mark, value = member[0].partition("=")
    if unquote_plus(name).lower() in HARMLESS_QUERY and _HARMLESS_VALUE.fullmatch(value):
        return member[0]
    return f"{name}{mark}{_STAND_IN}" if mark else _STAND_IN


class Redactor:
    """Removes the secrets of one call.

    >>> Redactor(["sk-secret"]).text("Illegal header value b'Bearer sk-secret'")
    "Illegal header value b'Bearer ***'"

    Args:
        secrets: texts that nobody may read; those of less than 6 characters are left out.
    """

    __slots__ = ("forms",)

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets for form in _forms(secret)}
        forms = {form for form in forms if len(form) >= _MIN_CHARACTERS}
        # The longest first: one secret may be part of another.
        self.forms: tuple[str, ...] = tuple(sorted(forms, key=len, reverse=True))

    def text(self, text: str) -> str:
        """Return a text without the secrets; without any secret, the same object."""
        # A search for each form costs less than to compile one pattern for a single text.
        for form in self.forms:
            if form in text:
                text = text.replace(form, _STAND_IN)
        return text

    def content(self, content: bytes) -> bytes:
        """Return bytes without the secrets, which are UTF-8 where they are not ASCII."""
        text = content.decode("utf-8", "surrogateescape")
        redacted = self.text(text)
        return content if redacted is text else redacted.encode("utf-8", "surrogateescape")

    def exception(self, exception: T) -> T:
        """Return an exception whose text, representation and causes show no secret.

        The result is the same object with redacted members if that suffices.  Otherwise it is an
        exception with the same class name, module and traceback.
        """
        return self._exception(exception, set()) if self.forms else exception

    def _exception(self, exception: T, seen: set[int]) -> T:
        if id(exception) in seen:
            return exception
        seen.add(id(exception))
        suppresses = exception.__suppress_context__
        for link in ("__cause__", "__context__"):
            inner = cast("BaseException | None", getattr(exception, link))
            if inner is not None:
                setattr(exception, link, self._exception(inner, seen))
        exception.__suppress_context__ = suppresses
        members: object = getattr(exception, "exceptions", ())
        if isinstance(members, tuple):  # of a group
            for member in cast("tuple[object, ...]", members):
                if isinstance(member, BaseException):
                    self._exception(member, seen)
        if self._shows_secret(exception):
            exception.args = cast("tuple[object, ...]", self._value(exception.args))
            for name, value in vars(exception).items():
                redacted = self._value(value)
                if redacted is not value:
                    setattr(exception, name, redacted)
        return self._stand_in(exception) if self._shows_secret(exception) else exception

    def _shows_secret(self, exception: BaseException) -> bool:
        try:
            # The representation of a list escapes the notes; a traceback shows them unchanged.
            notes = cast("list[object]", vars(exception).get("__notes__", []))
            shown = "\n".join((str(exception), repr(exception), *map(str, notes)))
        except Exception:  # noqa: BLE001 - a text that cannot be made is shown by nobody
            return False
        return self.text(shown) is not shown

    def _value(self, value: object) -> object:
        """Redact texts inside of plain containers; the same object where there is nothing."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return self.content(value)
        if type(value) is dict:
            members = cast("dict[object, object]", value)
            changed = {name: self._value(member) for name, member in members.items()}
            return changed if changed != members else members
        if type(value) in {list, tuple}:
            items = cast("list[object] | tuple[object, ...]", value)
            redacted_items = [self._value(item) for item in items]
            if any(new is not old for new, old in zip(redacted_items, items, strict=True)):
                return type(items)(redacted_items)
        return value

    def _stand_in(self, exception: T) -> T:
        base = type(exception)
        made = type(base.__name__, (Exception,), {"__module__": base.__module__})
        stand_in = made(self.text(str(exception))).with_traceback(exception.__traceback__)
        stand_in.__cause__, stand_in.__context__ = exception.__cause__, exception.__context__
        stand_in.__suppress_context__ = exception.__suppress_context__
        return cast("T", stand_in)


NOTHING_TO_REDACT: Final = Redactor(())


def secrets_in_headers(headers: object) -> Iterator[str]:
    """Yield the secrets of a request's headers: values, and the parts of credentials."""
    for name, value in _pairs(headers):
        if name.lower() in HARMLESS_HEADERS or _HARMLESS_PREFIX.match(name.lower()):
            continue
        yield value
        scheme, _, credentials = value.strip().partition(" ")
        if scheme.lower() in _SCHEMES:
            yield credentials.strip()
        if scheme.lower() == "basic":
            yield from _secrets_in_basic(credentials)
        if name.lower() == "cookie":
            yield from (pair.partition("=")[2].strip() for pair in value.split(";"))


def secrets_in_query(query: object) -> Iterator[str]:
    """Yield the secrets of a query."""
    for name, value in _pairs(query):
        if name.lower() not in HARMLESS_QUERY:
            yield value


def secrets_in_url(url: str) -> Iterator[str]:
    """Yield the secrets of a URL: its user and password, and its query."""
    address, _, query = url.partition("?")
    user, at, place = address.partition("://")[2].rpartition("@")
    if at:
        yield user
        for part in user.split(":", 1):
            yield from (part, unquote(part))
    else:
        # A port that is not a number may be a password without a user; clients quote it.
        port = place.partition("/")[0].rpartition("]")[2].partition(":")[2]
        yield from () if port.isdigit() else (port,)
    yield from secrets_in_query(parse_qsl(query, keep_blank_values=True))


def secrets_of_client(client: object) -> Iterator[str]:
    """Yield the credentials that a client of HTTP or of an SDK holds."""
    for name in _KEY_MEMBERS:
        value = _member(client, name)
        yield from (value,) if isinstance(value, str) else ()
    for name in _HEADER_MEMBERS:
        yield from secrets_in_headers(_member(client, name))
    for name in _QUERY_MEMBERS:
        yield from secrets_in_query(_member(client, name))
    for name in _ADDRESS_MEMBERS:
        yield from secrets_in_url(str(_member(client, name) or ""))
    yield from _secrets_of_auth(_member(client, "auth"))
    yield from _secrets_of_auth(_member(client, "_default_auth"))
    for jar in (_member(client, "cookies"), _member(client, "cookie_jar")):
        cookies = _member(jar, "jar") or jar
        if isinstance(cookies, Iterable):
            for cookie in cast("Iterable[object]", cookies):
                value = _member(cookie, "value")
                yield from (value,) if isinstance(value, str) else ()
    yield from _secrets_of_proxies(client)
    # The client of HTTP inside of an SDK's.
    if (inner := _member(client, "_client")) is not None:
        yield from secrets_of_client(inner)


def _secrets_of_proxies(client: object) -> Iterator[str]:
    """Yield the users and passwords of the proxies that a client was made with."""
    # aiohttp
    yield from secrets_in_url(str(_member(client, "_default_proxy") or ""))
    yield from _secrets_of_auth(_member(client, "_default_proxy_auth"))
    # httpx, httpx2: a transport for each pattern of URLs, around a pool of httpcore
    mounts = _member(client, "_mounts")
    transports = [_member(client, "_transport")]
    if isinstance(mounts, Mapping):
        transports += cast("Mapping[object, object]", mounts).values()
    for transport in transports:
        headers = _member(_member(transport, "_pool"), "_proxy_headers")
        for name, value in cast("Iterable[tuple[object, object]]", headers or ()):
            if isinstance(name, bytes) and isinstance(value, bytes):
                yield from secrets_in_headers({name.decode("latin-1"): value})


def secrets_of_environment() -> Iterator[str]:
    """Yield the users and passwords of the environment's proxies."""
    # The module imports ssl, which is not needed before a call.
    from urllib.request import getproxies  # noqa: PLC0415 - as said

    for url in getproxies().values():
        yield from secrets_in_url(url if "://" in url else f"http://{url}")


def secrets_of_response(response: object) -> Iterator[str]:
    """Yield the secrets of the request of a response, if the response has it."""
    request = _member(response, "request") or _member(response, "request_info")
    yield from secrets_in_headers(_member(request, "headers"))
    yield from secrets_in_url(str(_member(request, "url") or ""))


def _secrets_of_auth(auth: object) -> Iterator[str]:
    members: list[object] = []
    if isinstance(auth, tuple):
        members = list(cast("tuple[object, ...]", auth))
    elif auth is not None:
        members = list(getattr(auth, "__dict__", {}).values())
    for member in members:
        text = member.decode("utf-8", "replace") if isinstance(member, bytes) else member
        if isinstance(text, str):
            yield text
            yield from secrets_in_headers({"authorization": text})


def _secrets_in_basic(credentials: str) -> Iterator[str]:
    try:
        pair = b64decode(credentials, validate=True).decode()
    except ValueError:
        return
    yield pair
    yield from pair.split(":", 1)


def _pairs(members: object) -> Iterator[tuple[str, str]]:
    """Yield names and texts of a mapping, of pairs, or of a multiple mapping."""
    items: object = members
    if not isinstance(members, list):
        many = cast("Callable[[], object] | None", getattr(members, "multi_items", None))
        each = many or cast("Callable[[], object] | None", getattr(members, "items", None))
        items = each() if callable(each) else ()
    for pair in cast("Iterable[tuple[object, object]]", items):
        name, value = pair
        values = cast("list[object]", value) if isinstance(value, list) else [value]
        for one in values:
            text = one.decode("latin-1") if isinstance(one, bytes) else one
            if isinstance(text, str):
                yield str(name), text


def _member(holder: object, name: str) -> object | None:
    """Return an attribute of a foreign object, None if its getter raises."""
    try:
        return cast("object | None", getattr(holder, name, None))
    except Exception:  # noqa: BLE001 - as said
        return None


def _forms(secret: str) -> Iterator[str]:
    """Yield the forms in which a secret may occur in a text."""
    for text in {secret, secret.strip(), unquote(secret), unquote_plus(secret)}:
        if len(text) < _MIN_CHARACTERS:
            continue
        yield text
        for escaped in {quote(text, safe=""), quote(text), quote_plus(text)}:
            yield escaped
            yield _ESCAPE.sub(lambda escape: escape[0].lower(), escaped)
        yield from (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
        yield from (repr(text)[1:-1], repr(text.encode("utf-8", "surrogatepass"))[2:-1])
        yield from _in_base64(text.encode("utf-8", "surrogatepass"))


def _in_base64(secret: bytes) -> Iterator[str]:
    """Yield the part of a secret's base64 that is independent of its neighbours, at each alignment.

    Three bytes become four characters; a character that holds bits of a neighbour is left out.
    """
    for before in range(3):
        for encode in (b64encode, urlsafe_b64encode):
            written = encode(b"\0" * before + secret).decode().rstrip("=")
            begin = -(-before * 4 // 3)
            end = (before + len(secret)) * 4 // 3
            yield written[begin:end]


def address_of(url: str) -> tuple[str | None, int | None]:
    """Return the host and the port of a URL, and nothing else of it.

    >>> address_of("https://user:password@[::1]:8443/v1?key=k")
    ('::1', 8443)
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None, None
    if not host:
        return None, None
    return host, port if port is not None else 443 if parts.scheme == "https" else 80
