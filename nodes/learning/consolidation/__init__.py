"""Consolidation (§8): what cards have taught becomes the weights of a model.

Examine, gather, measure, train, judge, deploy, replay, settle. What each step found is in the checkpoint, and
a training saves itself every few steps, so a consolidation that is killed goes on with the same command.

Deviations from the paper, each for a reason:

- Only what the model was trained on is archived. The held-out fifth and the cards that are not proven yet
  stay: they are the small seed set, and no lesson is lost that no weight holds.
- A model serves only where two paired tests refute that it is worse: on generic questions, and on replayed
  tasks, the tuned model with the cards that are left beside the base with all cards. A third has to show that
  of the archived cards the tuned model alone says more than the base alone: else no weight holds them.
- The tasks that are replayed were not trained on: of each card the latest task is kept for them.
"""
