"""Notes on what the results of `mneme eval memory_sharing` show and do not show."""

from collections.abc import Sequence
from typing import get_args

from mneme.evals.answering import Identity
from mneme.evals.report import Row
from mneme.evals.sharing.data import NEAR, Item, Split, closest_across
from mneme.evals.sharing.pool_runs import MOST_SHOTS, Growth, Pools
from mneme.evals.sharing.scores import BertScore
from mneme.evals.sharing.tables import MEASURES, NAMES, Results, compared, trainings, ways

UNREADABLE = 0.2
"""Share of unknown tokens from which on an agent's BERTScore is called into question."""
OF_RULES = [
    "Answered by rules. Rules write no poem, riddle or plan of their own: without an example they restate "
    "the question; with examples they put the new question's words into an example's answer, line by line. "
    "So these figures show whether memories reach the agents, whether better examples make better answers, "
    "which pool and which retriever finds them, and that bad answers stay out of the pools.",
    "They do not show how well a language model writes, how much it gains from examples, how a second and a "
    "third example add to the first, nor whether it judges its answers rightly. What rules write to new "
    "questions often fails the checks of form and stays out, so that pools grow little by it; the standard "
    "answers stand for agents that write well. A restated question shares words with its answer, which "
    "raises zero-shot ROUGE-L, most of all for puzzles and riddles.",
]


def notes_on(
    results: Results, splits: dict[int, Split], items: Sequence[Item], bert: BertScore, who: Identity
) -> list[str]:
    """Return the notes under the tables."""
    return [
        f"{len(items)} items, {len(splits)} seeds; BERTScore by {bert.name}, layer {bert.layers}, "
        "F1, not rescaled. The authors' code takes the precision by microsoft/deberta-xlarge-mnli: compare "
        "the order and the differences of its figures with ours, not the figures themselves.",
        *_closest(splits),
        *_unreadable(results, items, bert),
        *(_shots_note(results, growth) for growth in get_args(Growth)),
        *(_growth_note(results, growth) for growth in get_args(Growth)),
        *(_pools_note(results, growth) for growth in get_args(Growth)),
        *(_retriever_note(results, growth) for growth in get_args(Growth)),
        _trainings_note(results),
        "The projection's rank, learning rate and decay were chosen on half of the shipped sets: on these "
        "the trained retriever is not judged by data that nobody had looked at. Give your own with --data.",
        "Useful memories are the v/2 of lowest contradiction (eq. 1) among the first ten of every way; p: "
        "Wilcoxon over test items, each once with its mean over the seeds, after Benjamini and Hochberg.",
        *([] if who.is_model else OF_RULES),
    ]


def _closest(splits: dict[int, Split]) -> list[str]:
    found = max(closest_across(each) for each in splits.values())
    if found >= NEAR:
        return ["Items of the test are in the pool or were asked before: the last table tells them apart."]
    return [
        f"No item is in two splits; the closest two of different splits are {found:.0f} % alike, and from "
        f"{NEAR:.0f} % on two count as the same."
    ]


def _unreadable(results: Results, items: Sequence[Item], bert: BertScore) -> list[str]:
    """Name the agents whose answers hold tokens that the encoder does not know."""
    shares = {
        agent: bert.unknown([item.answer for item in items if item.agent == agent])
        for agent in results.agents
    }
    return [
        f"{agent}: the encoder does not know {share:.0%} of the tokens and cannot tell them apart; "
        "judge it by ROUGE-L, or give another encoder with --encoder."
        for agent, share in shares.items()
        if share > UNREADABLE
    ]


def _shots_note(results: Results, growth: Growth) -> str:
    rows = [results.tests("domain", growth, 100, shots) for shots in (MOST_SHOTS, 0)]
    return f"Three examples instead of none, {growth} answers: {_differences(rows)}."


def _growth_note(results: Results, growth: Growth) -> str:
    rows = [results.tests("domain", growth, percent, MOST_SHOTS) for percent in (100, 0)]
    return f"All new questions asked instead of none, {growth} answers stored: {_differences(rows)}."


def _pools_note(results: Results, growth: Growth) -> str:
    rows = [results.tests(pools, growth, 100, MOST_SHOTS) for pools in get_args(Pools)]
    return f"Domain pools instead of a single one, {growth} answers: {_differences(rows)}."


def _differences(rows: Sequence[Sequence[Row]]) -> str:
    found = {measure: compared(rows[0], rows[1], measure) for measure in MEASURES}
    return ", ".join(f"{NAMES[m]} {difference:+.3f} (p={p:.1g})" for m, (difference, p) in found.items())


def _retriever_note(results: Results, growth: Growth) -> str:
    figures = ways(results, growth)
    gains = (
        f"than {way} recall@10 {of['better by']['recall@10']:+.3f} (p={of['p']['recall@10']:.1g})"
        for way, of in figures.items()
        if way != "trained"
    )
    return f"Trained retriever, {growth} answers: {', '.join(gains)}."


def _trainings_note(results: Results) -> str:
    trained = trainings(results)
    if not trained["versions"]:
        return "No pool held enough memories to train a retriever."
    return (
        f"{trained['versions']} retrievers were trained, {trained['kept']} kept; {trained['seconds']:.2f} s "
        f"each on "
        f"{', '.join(trained['device'])}; of those kept recall@10 of held-out memories "
        f"{trained['recall before'] or 0:.3f} → {trained['recall after'] or 0:.3f}."
    )
