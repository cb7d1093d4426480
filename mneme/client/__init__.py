"""Open the ledger and the graphs: in this process, or on a running server."""
