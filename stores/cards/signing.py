"""Signatures of exported cards: they show that a file comes from this team's own export, unchanged.

The key is the setting MNEME_TEAM_KEY, where several ledgers are one team's, else a secret that the team's
ledger makes for itself. A signature holds for one team: another team's key, or name, gives another one.
"""

import hashlib
import hmac
import json
import secrets

from mneme.core.errors import Conflict
from mneme.core.settings import settings
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import team_namespace
from mneme.stores.ledger.records import Change, Value

KEY = "key"


class TeamSignature:
    """The signature of one team."""

    def __init__(self, ledger: Ledger, team: str) -> None:
        self._ledger, self._team = ledger, team
        self._namespace = team_namespace(team, "signature")

    async def of(self, value: Value) -> str:
        """Return the signature of plain JSON."""
        said = json.dumps([self._team, value], sort_keys=True, ensure_ascii=False)
        return hmac.new(await self._key(), said.encode(), hashlib.sha256).hexdigest()

    async def holds(self, signature: str, value: Value) -> bool:
        """Say whether the team signed this."""
        return bool(signature) and hmac.compare_digest(signature, await self.of(value))

    async def _key(self) -> bytes:
        given = settings().team_key.get_secret_value()
        if given:
            return given.encode()
        head = await self._ledger.get(self._namespace, KEY)
        if head is None:
            made: Value = {"secret": secrets.token_hex(32)}
            change = Change(reason="the first export or import", actor="card files")
            try:
                head = await self._ledger.insert(self._namespace, made, text="", change=change, key=KEY)
            except Conflict:  # somebody else was first
                return await self._key()
        return str(head.value["secret"]).encode()
