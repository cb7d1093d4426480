"""Compound learning (§3): recall, research, challenge, patch, verify, decide, compile, keep.

Deviations from the paper, each for a reason:

- The devil's advocate sees a quick trial of the draft with its plan, where there is an environment: §7's
  third task can only be challenged after it ran.
- Verify measures the best draft, not always the last: a patch may make things worse.
- The monitor decides in one step and writes in another, so that a run that is killed between them writes the
  same lesson once when it is resumed.
- Promotion (only the leader approves, §5) is carried out after the task's outcome has been added to the
  card's evidence, since the outcome counts for it.
"""
