"""Questions of a discussion."""
