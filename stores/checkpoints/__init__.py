"""Checkpoints of graphs: SQLite or Postgres."""
