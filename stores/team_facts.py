"""Facts that members of a team shared with it, and those that wait for a reviewer."""

from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import team_namespace
from mneme.stores.users.memories import UserMemories


class TeamFacts(UserMemories):
    """A team's facts, or its `proposals`; each names the memory that it was made from."""

    def __init__(self, ledger: Ledger, team: str, place: str = "facts") -> None:
        super().__init__(ledger, team, team_namespace(team, place))
        self.place = place
