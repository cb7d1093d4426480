"""Homes with something in them, made before a server opens them."""

from mneme.models.embedding.embedder import Embedder
from mneme.stores.ledger.ledger import open_ledger
