"""Read a database of another program from a copy, so that nothing is written where it is."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from mneme.core.errors import BadInput

BESIDE = ("", "-wal", "-journal")
"""The database, what was written but is not in it yet, and what was there before an unfinished write."""
MAGIC = b"SQLite format 3\x00"


def is_sqlite(file: Path) -> bool:
    """Tell whether a file is an SQLite database."""
    try:
        with file.open("rb") as raw:
            return raw.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


@contextmanager
def opened_copy(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy of an SQLite database; rows can be read by the names of their columns. Raises BadInput."""
    hint = "Close the program that uses it, and try again."
    with TemporaryDirectory(prefix="mneme-import-") as folder:
        try:
            for ending in BESIDE:
                if (part := Path(f"{file}{ending}")).exists():
                    shutil.copyfile(part, Path(folder, f"copy{ending}"))
            with closing(sqlite3.connect(Path(folder, "copy"))) as connection:
                connection.row_factory = sqlite3.Row
                connection.text_factory = lambda raw: raw.decode(errors="replace")
                yield connection
        except OSError as error:
            raise BadInput(f"Cannot read {file}: {error.strerror or error}.", hint) from error
        except sqlite3.Error as error:
            raise BadInput(f"{file} cannot be read as a database: {error}.", hint) from error
