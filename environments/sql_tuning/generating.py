"""Draw the tables of a schema: the same seed gives the same rows, on every database."""

from collections.abc import Iterable
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

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


def code_of(number: int, region: int) -> str:
    """Write the code of one fact: a region, a running number, and its region again at the end."""
    return f"{WORDS[region % len(WORDS)][:3]}-{number:07d}-{region:02d}"


def _facts(schema: Schema, dice: np.random.Generator, rows: int) -> Iterable[Row]:
    regions = dice.integers(0, REGIONS, rows).tolist()
    codes = [code_of(number, region) for number, region in zip(dice.permutation(rows), regions, strict=True)]
    return zip(
        range(1, rows + 1),
        _times(schema, dice, rows),
        _skewed(dice, schema.entities, rows).tolist(),
        np.exp(dice.normal(np.log(MEDIAN_AMOUNT), AMOUNT_SPREAD, rows)).astype(np.int64).tolist(),
        dice.choice(schema.statuses, rows, p=STATUS_SHARES).tolist(),
        dice.choice(schema.channels, rows, p=CHANNEL_SHARES).tolist(),
        [f"R{region:02d}" for region in regions],
        codes,
        [str(number) for number in dice.integers(1, NUMBERS + 1, rows).tolist()],
        _notes(dice, rows),
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


def _skewed(dice: np.random.Generator, entities: int, rows: int) -> NDArray[np.int64]:
    """Draw what each fact is about; a few have many facts, most have few (density 1/sqrt)."""
    return (np.floor(dice.random(rows) ** 2 * entities) + 1).astype(np.int64)


def _notes(dice: np.random.Generator, rows: int) -> list[str]:
    notes = [" ".join(words) for words in dice.choice(WORDS, (500, 22)).tolist()]
    return [notes[n] for n in dice.integers(0, len(notes), rows).tolist()]


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
