"""Query tuning: slow queries on a real database, SQLite in-process or PostgreSQL by URL."""
