"""The shop that pages of the documentation take for granted; `python -m tests.doubles.shop` makes it."""

import sqlite3
from pathlib import Path

TABLES = """CREATE TABLE shops (id INTEGER NOT NULL UNIQUE, city TEXT);
CREATE TABLE sales (shop_id INTEGER, price INTEGER, seller TEXT, buyer TEXT, address TEXT, note TEXT);
"""
NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})"
ROWS = f"""{NUMBERS.format(rows=2_000)} INSERT INTO shops SELECT i, 'city-' || (i % 200) FROM n;
{NUMBERS.format(rows=200_000)} INSERT INTO sales (shop_id, price, note)
SELECT i * 7919 % 2000 + 1, i % 90, printf('%080d', i) FROM n;
"""

if __name__ == "__main__":
    Path("tables.sql").write_text(TABLES, encoding="utf-8")
    sqlite3.connect("shop.sqlite").executescript(TABLES + ROWS)
