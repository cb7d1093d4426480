// How much was added, changed and taken back on each day.

import { useState } from "react";
import { type Schemas, read } from "./api";
import { useLoaded } from "./hooks";
import { Choice, plural } from "./parts";

type Day = Schemas["Day"];
const SPANS = { 14: "two weeks", 30: "30 days", 90: "90 days", 365: "a year" };
const PARTS = { added: "meaning", changed: "words", retired: "names", forgotten: "dates" } as const;
type Part = keyof typeof PARTS;
const NAMES = Object.keys(PARTS) as Part[];
const HIGH = 100;
const WIDE = 10;

const local = (at: Date) => new Date(at.valueOf() - 60_000 * at.getTimezoneOffset()).toISOString().slice(0, 10);

/** Each of the last days, also those on which nothing changed. */
function filled(found: Day[], span: number): Day[] {
  const of = new Map(found.map((each) => [each.day, each]));
  const last = [...of.keys(), local(new Date())].sort().at(-1) ?? "";
  return Array.from({ length: span }, (_, ago) => {
    const day = new Date(new Date(`${last}T12:00:00Z`).valueOf() - 86_400_000 * (span - 1 - ago)).toISOString().slice(0, 10);
    return of.get(day) ?? { day, added: 0, changed: 0, retired: 0, forgotten: 0 };
  });
}

const total = (day: Day) => NAMES.reduce((before, name) => before + day[name], 0);
const named = (day: string) => new Date(`${day}T12:00:00`).toLocaleDateString(undefined, { dateStyle: "medium" });
const said = (day: Day) =>
  NAMES.filter((name) => day[name])
    .map((name) => `${day[name].toLocaleString()} ${name}`)
    .join(", ");

function Bar({ day, at, most }: { day: Day; at: number; most: number }) {
  let top = HIGH;
  return (
    <g>
      <rect className="whole" x={at * WIDE} y={0} width={WIDE} height={HIGH} />
      {NAMES.map((name) => {
        const height = (HIGH * day[name]) / most;
        top -= height;
        return (
          <rect key={name} className={`of-${PARTS[name]}`} x={at * WIDE + 1} y={top} width={WIDE - 2} height={height} />
        );
      })}
      <title>{`${named(day.day)}: ${said(day) || "no change"}`}</title>
    </g>
  );
}

export function Chart({ turn }: { turn: unknown }) {
  const [span, set] = useState("30");
  const load = (signal: AbortSignal) => read<Day[]>("memories/activity", { days: Number(span) }, signal);
  const { value } = useLoaded(load, [span, turn]);
  if (!value?.length) return null;
  const days = filled(value, Number(span));
  const most = Math.max(...days.map(total));
  const sums = NAMES.map((name) => ({ name, sum: days.reduce((before, day) => before + day[name], 0) })).filter(
    ({ sum }) => sum,
  );
  const all = sums.map(({ name, sum }) => `${sum.toLocaleString()} ${name}`);
  return (
    <figure className="chart">
      <figcaption>
        <strong>Changes by day</strong>
        <Choice
          aria-label="How far back"
          size="xs"
          value={span}
          set={set}
          data={Object.entries(SPANS).map(([each, label]) => ({ value: each, label }))}
        />
      </figcaption>
      <div className="axes">
        <span className="quiet most">{most.toLocaleString()}</span>
        <svg
          viewBox={`0 0 ${days.length * WIDE} ${HIGH}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`In ${plural(days.length, "day")}: ${all.join(", ")}; ${most.toLocaleString()} on one day at most.`}
        >
          {days.map((day, at) => (
            <Bar key={day.day} day={day} at={at} most={Math.max(1, most)} />
          ))}
        </svg>
        <span className="quiet">{named(days[0]?.day ?? "")}</span>
        <span className="quiet end">{named(days.at(-1)?.day ?? "")}</span>
      </div>
      <p className="legend">
        {sums.map(({ name, sum }) => (
          <span key={name}>
            <i className={`of-${PARTS[name]}`} aria-hidden />
            {sum.toLocaleString()} {name}
          </span>
        ))}
      </p>
    </figure>
  );
}
