"""Questions that the memories of a team ask."""
