"""What to do where somebody else wrote first."""

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random

from mneme.core.errors import Conflict

retry_on_conflict = retry(
    retry=retry_if_exception_type(Conflict),
    stop=stop_after_attempt(100),
    wait=wait_random(0, 0.02),
    reraise=True,
)
"""Read and decide again; a decorator."""
