// How a search hit got its place: what each method gave to its score.

import { Fragment } from "react";

type Scores = { [part: string]: number };
const PARTS: { name: string; says: string; of: string }[] = [
  { name: "dense", says: "meaning", of: "meaning" },
  { name: "words", says: "words in common", of: "words" },
  { name: "names", says: "a name in the question", of: "names" },
  { name: "dates", says: "a date in the question", of: "dates" },
  { name: "kind", says: "an event, asked “when”", of: "dates" },
  { name: "lent", says: "told beside a better one", of: "beside" },
];
const LEAST = 0.005;

/** What the colours of the bars mean. */
export const Legend = () => (
  <p className="legend">
    <span>The best first. A score is the sum of</span>
    {PARTS.filter(({ name }) => name !== "kind").map(({ name, says, of }) => (
      <span key={name}>
        <i className={`of-${of}`} aria-hidden />
        {says}
      </span>
    ))}
  </p>
);

interface OfHit {
  scores: Scores;
  /** The highest total on the page, which is as long as a bar can be. */
  most: number;
  /** Why it stands before one of a higher score, where it does. */
  before?: string;
}

export function Why({ scores, most, before }: OfHit) {
  const total = scores.total;
  if (total === undefined) return null;
  const given = PARTS.filter(({ name }) => Math.abs(scores[name] ?? 0) >= LEAST);
  return (
    <details className="why">
      <summary title="What its score is made of">
        <span className="bar" aria-hidden>
          {given.map(({ name, of }) => (
            <span
              key={name}
              className={`of-${of}`}
              style={{ width: `${(100 * Math.max(0, scores[name] ?? 0)) / Math.max(most, LEAST)}%` }}
            />
          ))}
        </span>
        <span>
          <span className="unseen">score </span>
          {total.toFixed(2)}
        </span>
      </summary>
      <dl className="parts">
        {given.map(({ name, says, of }) => (
          <Fragment key={name}>
            <dt>
              <i className={`of-${of}`} aria-hidden />
              {says}
            </dt>
            <dd>{(scores[name] ?? 0).toFixed(2)}</dd>
          </Fragment>
        ))}
      </dl>
      {before && <p>{before}</p>}
    </details>
  );
}
