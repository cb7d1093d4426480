"""The file of users and hashed keys that `MNEME_AUTH` names."""

import hmac
import logging
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError

from mneme.core.durable import write_durably
from mneme.core.errors import BadInput, Conflict, Forbidden, MnemeError, NotFound, StorageFailure

USER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
USER_KEY = re.compile(r"mneme-([0-9a-f]{16})-([0-9a-f]{64})")
LOCK_SECONDS = 10
log = logging.getLogger(__name__)

Stamp = tuple[int, int, int]


class User(BaseModel):
    """A user with a key; `number` is the public part of the key, `digest` the hash of its secret part."""

    model_config = ConfigDict(frozen=True)

    name: str
    number: str
    salt: str
    digest: str
    added: datetime


class UserFile(BaseModel):
    """The content of the users file."""

    version: int = 1
    users: list[User] = []


def add_user(path: Path, name: str) -> str:
    """Add a user and return the key, which cannot be shown again."""
    if not USER_NAME.fullmatch(name):
        raise BadInput(
            f"{name!r} is not a valid user name.", "Use up to 63 lower-case letters, digits, - and _."
        )
    number, secret, salt = secrets.token_hex(8), secrets.token_hex(32), secrets.token_hex(16)
    user = User(name=name, number=number, salt=salt, digest=_digest(salt, secret), added=datetime.now(UTC))

    def added(users: list[User]) -> list[User]:
        if any(each.name == name for each in users):
            hint = f"For a new key: `mneme users remove {name}`, then add."
            raise Conflict(f"The user {name} exists already.", hint)
        return [*users, user]

    _change(path, added)
    return f"mneme-{number}-{secret}"


def remove_user(path: Path, name: str) -> None:
    """Remove a user: the key is refused from the next request on; the user's data stays."""

    def without(users: list[User]) -> list[User]:
        left = [user for user in users if user.name != name]
        if len(left) == len(users):
            raise NotFound(f"There is no user {name}.", "`mneme users list` shows all users.")
        return left

    _change(path, without)


def list_users(path: Path) -> list[User]:
    """Return the users in the order in which they were added; none if the file does not exist."""
    return _read(path).users if path.exists() else []


def authenticate(path: Path, key: str) -> str:
    """Return the name of the user that the key belongs to, or raise `Forbidden`."""
    if not key:
        raise Forbidden("No key was sent.", "Send it as x-api-key, or as Authorization: Bearer.")
    parts = USER_KEY.fullmatch(key)
    # The file's stamp is looked at for each key: a removed user is refused at once.
    user = _by_number(path, _stamp(path)).get(parts[1]) if parts else None
    if parts is None or user is None or not hmac.compare_digest(user.digest, _digest(user.salt, parts[2])):
        raise Forbidden(  # the same for a wrong number and a wrong secret
            "This key belongs to no user.", "`mneme users add NAME` adds a user and prints the key."
        )
    return user.name


def number_of(path: Path, key: str) -> str:
    """Return the public part of a key, right or wrong, if a user's key has the same; else ""."""
    parts = USER_KEY.fullmatch(key)
    return parts[1] if parts and parts[1] in _by_number(path, _stamp(path)) else ""


def warn_of_no_users(path: Path) -> None:
    """Warn if the file of users cannot be read: until it can be, every request is refused."""
    try:
        _by_number(path, _stamp(path))
    except MnemeError as failure:
        log.warning("MNEME_AUTH: every request is refused. %s %s", failure, failure.hint)


def _digest(salt: str, secret: str) -> str:
    # A key is 256 random bits, which nobody can guess: a slow hash (argon2, bcrypt), as passwords need it,
    # would only slow down every request.
    return sha256(f"{salt}{secret}".encode()).hexdigest()


def _change(path: Path, change: Callable[[list[User]], list[User]]) -> None:
    """Replace the whole file, one writer at a time."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock", timeout=LOCK_SECONDS, mode=0o600):
            held = _read(path) if path.exists() else UserFile()
            changed = held.model_copy(update={"users": change(held.users)})
            write_durably(path, changed.model_dump_json(indent=2) + "\n")


def _read(path: Path) -> UserFile:
    try:
        with storage_errors(path):
            text = path.read_text(encoding="utf-8")
        return UserFile.model_validate_json(text)
    except ValidationError as failure:
        raise BadInput(
            f"{path} is not a users file.", "Set MNEME_AUTH to the file that `mneme users add` writes."
        ) from failure


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except Timeout as failure:
        raise StorageFailure(f"Another process is changing {path}.", "Try again.") from failure
    except (OSError, UnicodeDecodeError) as failure:
        raise StorageFailure(
            f"The users in {path} cannot be read or written: {failure}",
            "`mneme users add NAME` writes the file; MNEME_AUTH names it.",
        ) from failure


def _stamp(path: Path) -> Stamp:
    """Return a value that differs after every change: each change writes a new file."""
    with storage_errors(path):
        seen = path.stat()
    return seen.st_ino, seen.st_mtime_ns, seen.st_size


@lru_cache(maxsize=4)
def _by_number(path: Path, stamp: Stamp) -> dict[str, User]:
    """Return the users by the public part of their keys; read again for every new stamp."""
    return {user.number: user for user in _read(path).users}
