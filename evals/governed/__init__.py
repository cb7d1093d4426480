"""Memory that several people and teams share: what leaks, is stale, contradicts, or has no origin."""
