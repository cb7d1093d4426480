"""`python -m mneme`."""

from mneme.cli import main

main()
