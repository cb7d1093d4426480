// The access log: which program was shown or wrote which memory, and when.

import { useState } from "react";
import { type Schemas, part, read } from "../api";
import { useLoaded } from "../hooks";
import { Cells, Choice, Choices, EVENTS, Empty, Loaded, Row, Rows, Section, Time, Title, plural, spaced } from "../parts";
import { type Known, latestMemories, saidAt, textOf } from "./conversations";

type Reading = Schemas["Reading"];
type Version = Schemas["Version"];
const MOST = 500;
const ANY = "any";
const DID = { any: "all", read: "was shown", written: "wrote" };

/** That a program was shown memories, or wrote one. */
interface Act {
  by: string;
  at: string;
  event: "read" | Version["event"];
  thread: string;
  of: { key: string; content: string }[];
}

const shownTo = (readings: Reading[], known: Known): Act[] =>
  readings.map(({ by, at, keys }) => ({
    by,
    at,
    event: "read",
    thread: "",
    of: keys.map((key) => ({ key, content: textOf(key, known) })),
  }));

const writtenBy = (versions: Version[]): Act[] =>
  versions.map(({ key, at, event, value, change }) => ({
    by: change.actor,
    at,
    event,
    thread: change.source.thread,
    of: [{ key, content: String(value.content) }],
  }));

async function log(signal: AbortSignal): Promise<Act[]> {
  const [readings, versions, known] = await Promise.all([
    read<Reading[]>("memories/readings", { limit: MOST }, signal),
    read<Version[]>("memories/changes", { limit: MOST }, signal),
    latestMemories(signal),
  ]);
  return [...shownTo(readings, known), ...writtenBy(versions)].sort((one, other) => other.at.localeCompare(one.at));
}

interface Program {
  by: string;
  read: number;
  written: number;
  last: string;
}

function programs(acts: Act[]): Program[] {
  const found = new Map<string, Program>();
  for (const { by, event, at } of acts) {
    const of = found.get(by) ?? { by, read: 0, written: 0, last: at };
    of[event === "read" ? "read" : "written"] += 1;
    found.set(by, of);
  }
  return [...found.values()].sort((one, other) => other.read + other.written - one.read - one.written);
}

const Programs = ({ of }: { of: Program[] }) => (
  <Cells head={["Program", "Was shown memories", "Wrote", "Last"]} caption="By program">
    {of.map(({ by, read: shown, written, last }) => (
      <tr key={by}>
        <th scope="row">{spaced(by)}</th>
        <td>{shown ? plural(shown, "time") : "never"}</td>
        <td>{written ? plural(written, "version") : "nothing"}</td>
        <td>
          <Time at={last} />
        </td>
      </tr>
    ))}
  </Cells>
);

function ActRow({ act }: { act: Act }) {
  const { by, event, at, thread, of } = act;
  const [first, ...others] = of;
  if (!first) return null;
  return (
    <Row href={`#/memories/${part(first.key)}`} title={first.content}>
      <span>
        {event === "read" ? "shown to" : `${EVENTS[event]} by`} <strong>{spaced(by)}</strong>
      </span>
      <Time at={at} />
      {thread && <a href={saidAt(thread, "")}>its conversation</a>}
      {others.length > 0 && (
        <details className="why">
          <summary>with {others.length} more</summary>
          <ul>
            {others.map((each) => (
              <li key={each.key}>
                <a href={`#/memories/${part(each.key)}`}>{each.content}</a>
              </li>
            ))}
          </ul>
        </details>
      )}
    </Row>
  );
}

export function AccessPage() {
  const loaded = useLoaded(log, []);
  const [by, setBy] = useState(ANY);
  const [did, setDid] = useState<keyof typeof DID>("any");
  return (
    <>
      <Title>Access</Title>
      <p className="quiet">
        Which program was shown or wrote which memory. What programs and agents are shown is noted for 90 days, without
        what was asked; what you look at here or by commands is not.
      </p>
      <Loaded of={loaded}>
        {(acts) => {
          const all = programs(acts);
          const shown = acts.filter(
            (each) =>
              (by === ANY || each.by === by) && (did === "any" || (each.event === "read") === (did === "read")),
          );
          if (acts.length === 0) return <Empty>No program has written or read a memory yet.</Empty>;
          return (
            <>
              <Programs of={all} />
              <Choices>
                <Choice
                  label="Program"
                  value={by}
                  set={setBy}
                  data={[
                    { value: ANY, label: "all" },
                    ...all.map((each) => ({ value: each.by, label: spaced(each.by) })),
                  ]}
                />
                <Choice
                  label="What it did"
                  value={did}
                  set={(value) => setDid(value as keyof typeof DID)}
                  data={Object.entries(DID).map(([value, label]) => ({ value, label }))}
                />
              </Choices>
              {shown.length === 0 ? (
                <p>Nothing like that is in the log.</p>
              ) : (
                <Rows label="Access log">
                  {shown.map((each, at) => (
                    <ActRow key={at} act={each} />
                  ))}
                </Rows>
              )}
            </>
          );
        }}
      </Loaded>
    </>
  );
}

/** Which programs were shown a memory, how often, and when last. */
export function WhoRead({ id }: { id: string }) {
  const asked = { key: id, limit: MOST };
  const { value = [] } = useLoaded((signal) => read<Reading[]>("memories/readings", asked, signal), [id]);
  const readers = programs(shownTo(value, new Map()));
  if (readers.length === 0) return null;
  return (
    <Section title="Who was shown it" id="readers">
      <ul>
        {readers.map(({ by, read: times, last }) => (
          <li key={by}>
            <strong>{spaced(by)}</strong>, {plural(times, "time")}, the last <Time at={last} />
          </li>
        ))}
      </ul>
    </Section>
  );
}
