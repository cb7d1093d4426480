"""Questions of compound learning."""
