"""Files held to a command: tests, a benchmark, an output; a solution changes a copy of them."""
