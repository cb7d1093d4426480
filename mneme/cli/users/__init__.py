"""`mneme users`: who may use the server."""
