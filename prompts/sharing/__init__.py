"""Questions of Memory Sharing."""
