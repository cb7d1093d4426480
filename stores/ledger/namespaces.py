"""The namespaces of users and teams, for everything that belongs to one of them.

Names of users and teams come from outside. LangGraph's store API separates the parts of a namespace by
full stops, so a full stop in a name becomes %2E, and a per cent sign becomes %25: no two names share a
namespace.
"""

from mneme.stores.ledger.records import Namespace, check_name, check_namespace

LOCAL = "local"
"""The one person on a server without keys, and whoever uses the command line without a server."""


def user_namespace(user: str, *below: str) -> Namespace:
    """Return the namespace ("users", user, …). Raises BadInput."""
    return check_namespace(("users", escaped(check_name(user, "user id")), *below))


def team_namespace(team: str, *below: str) -> Namespace:
    """Return the namespace ("teams", team, …). Raises BadInput."""
    return check_namespace(("teams", escaped(check_name(team, "team")), *below))


def escaped(name: str) -> str:
    """Return a name as a part of a namespace."""
    return name.replace("%", "%25").replace(".", "%2E")


def unescaped(part: str) -> str:
    """Return the name that a part of a namespace stands for."""
    return part.replace("%2E", ".").replace("%25", "%")
