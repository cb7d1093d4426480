"""Draw the tables of a schema: the same seed gives the same rows, on every database."""

from collections.abc import Iterable
from datetime import datetime

import numpy as np

from mneme.environments.sql_tuning.schemas import (
    AMOUNT_SPREAD,
    CHANNEL_SHARES,
    DAYS,
    END,
    MEDIAN_AMOUNT,
    REGIONS,
    SEGMENTS,
    STATUS_SHARES,
    Schema,
)

Row = tuple[object, ...]
SECONDS = DAYS * 86_400
NUMBERS = 20_000
WORDS = (
    *("amber", "basalt", "cedar", "delta", "ember", "fjord", "grove", "harbour", "island", "juniper"),
    *("kelp", "larch", "meadow", "north", "orchard", "pebble", "quartz", "river", "summit", "thistle"),
    *("umber", "valley", "willow", "yarrow"),
)


def draw(schema: Schema, seed: int, rows: int) -> dict[str, Iterable[Row]]:
    """Draw each table's rows, in the order of its columns."""
    dice = np.random.default_rng([seed, rows, *schema.name.encode()])
    return {schema.fact: _facts(schema, dice, rows), schema.entity: _entities(schema, dice)}


def _facts(schema: Schema, dice: np.random.Generator, rows: int) -> Iterable[Row]:
    regions = dice.integers(0, REGIONS, rows).tolist()
    codes = [
        (f"{WORDS[region % len(WORDS)][:3]}-{number:07d}-{region:02d}")
        for number, region in zip(dice.permutation(rows), regions, strict=True)
    ]
    notes = [" ".join(words) for words in dice.choice(WORDS, (500, 22)).tolist()]
    return zip(
        range(1, rows + 1),
        _times(schema, dice, rows),
        (np.floor(dice.random(rows) ** 2 * schema.entities) + 1).astype(np.int64).tolist(),
        np.exp(dice.normal(np.log(MEDIAN_AMOUNT), AMOUNT_SPREAD, rows)).astype(np.int64).tolist(),
        dice.choice(schema.statuses, rows, p=STATUS_SHARES).tolist(),
        dice.choice(schema.channels, rows, p=CHANNEL_SHARES).tolist(),
        [f"R{region:02d}" for region in regions],
        codes,
        [str(number) for number in dice.integers(1, NUMBERS + 1, rows).tolist()],
        [notes[n] for n in dice.integers(0, len(notes), rows).tolist()],
        strict=True,
    )


def _times(schema: Schema, dice: np.random.Generator, rows: int) -> list[object]:
    """Draw times over two years; where facts arrive in order, the key grows with the time."""
    drawn = dice.integers(0, SECONDS, rows)
    offsets = np.sort(drawn) if schema.in_order else drawn
    start = int((END - datetime(1970, 1, 1)).total_seconds()) - SECONDS
    seconds = offsets + start
    if schema.epoch:
        return list(seconds.tolist())
    texts = np.datetime_as_string(seconds.astype("datetime64[s]"), unit="s").tolist()
    return [text.replace("T", " ") for text in texts]


def _entities(schema: Schema, dice: np.random.Generator) -> Iterable[Row]:
    segments = dice.integers(0, SEGMENTS, schema.entities).tolist()
    cities = dice.choice(WORDS, schema.entities).tolist()
    names = dice.choice(WORDS, (schema.entities, 2)).tolist()
    return (
        (n, f"{first} {second} {n}", f"S{segment:02d}", city)
        for n, ((first, second), segment, city) in enumerate(
            zip(names, segments, cities, strict=True), start=1
        )
    )
