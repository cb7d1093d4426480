"""Print the description of a server's routes, for clients that are made from it."""

import json

from mneme.server.app import app

print(json.dumps(app.openapi()))
