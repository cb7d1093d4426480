"""Questions of planning problems."""
