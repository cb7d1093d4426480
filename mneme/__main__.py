"""`python -m mneme`."""

from mneme.cli.main import main

main()
