"""Questions of household tasks."""
