"""Compound learning (§3): recall, research, challenge, patch, verify, decide, compile, keep.

Deviations from the paper, each for a reason:

- The devil's advocate sees a quick trial of the draft with its plan, where there is an environment: §7's
  third task can only be challenged after it ran.
- Verify measures the best draft, not always the last: a patch may make things worse.
- What the monitor decided is one step and writing it another, so that a run that is killed between them
  writes the very same lesson when it goes on, once.
- Promotion (only the leader approves, §5) is carried out after the task's outcome is in the card's
  evidence, of which it is a part.
"""
