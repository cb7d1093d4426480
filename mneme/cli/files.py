"""Read and write the files that a command is given; `-` is stdin, or the terminal."""

import sys
from pathlib import Path

from mneme.cli.show import print_lines
from mneme.core.errors import BadInput


def read_file(file: Path, hint: str) -> str:
    """Return the text of a file, its lines ended by `\\n`. Raises BadInput, with this hint."""
    try:
        raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise BadInput(f"Cannot read {file}: {error.strerror}.", hint) from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8 text.", hint) from error


def is_written(text: str, file: Path) -> bool:
    """Write a file; print what is for `-`, and return False. Raises BadInput."""
    if str(file) == "-":
        print_lines(text)
        return False
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"Cannot write {file}: {error.strerror}.", "Choose another file.") from error
    return True
