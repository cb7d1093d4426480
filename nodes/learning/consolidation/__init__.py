"""Consolidation (§8): what cards have taught becomes the weights of a model.

Examine, gather, measure, train, judge, deploy, replay, settle. The result of each step is in the checkpoint,
and a training saves itself every few steps, so a consolidation that is killed is resumed by the same command.

Deviations from the paper, each for a reason:

- Only the cards that the model was trained on are archived. The held-out fifth and the cards that are not
  proven yet stay: they are the small seed set, and no lesson is lost that the weights do not contain.
- A model serves only if two paired tests refute that it is worse: on generic questions, and on replayed tasks
  (the tuned model with the remaining cards against the base with all cards). A third test has to show that
  the tuned model alone says more about the archived cards than the base alone.
- The replayed tasks were not trained on: the latest task of each card is kept for the replay.
"""
