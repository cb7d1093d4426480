// The latest changes of a user's memories.

import { Button } from "@mantine/core";
import { useState } from "react";
import { type Schemas, part, read } from "../api";
import { Chart } from "../chart";
import { useLoaded } from "../hooks";
import { EVENTS, Empty, Loaded, Row, Rows, Time, Title, plural, spaced } from "../parts";
import { useRemembering } from "../remembering";

type Version = Schemas["Version"];
const STEP = 50;
const MOST = 1000;

/** Return the changes of each day by its name, in the order in which they are given. */
function days(versions: Version[]): [string, Version[]][] {
  const found = new Map<string, Version[]>();
  for (const each of versions) {
    const day = new Date(each.at).toLocaleDateString(undefined, { dateStyle: "full" });
    found.set(day, [...(found.get(day) ?? []), each]);
  }
  return [...found];
}

export function Timeline() {
  const [limit, setLimit] = useState(STEP);
  const load = (signal: AbortSignal) => read<Version[]>("memories/changes", { limit }, signal);
  const loaded = useLoaded(load, [limit]);
  const remembering = useRemembering(loaded.again);
  return (
    <>
      <Title>Timeline</Title>
      {remembering}
      {loaded.value && <Chart turn={loaded.value} />}
      <Loaded of={loaded}>
        {(versions) => (
          <>
            {versions.length === 0 ? (
              <Empty>Nothing was remembered or changed yet. Each change will be here, with its reason and its maker.</Empty>
            ) : (
              <p className="quiet">The latest {plural(versions.length, "change")}</p>
            )}
            {days(versions).map(([day, changes]) => (
              <section key={day} aria-label={day}>
                <h2 className="day">{day}</h2>
                <Rows label={`Changes of ${day}`}>
                  {changes.map((each) => (
                    <Row
                      key={each.key + each.version}
                      href={`#/memories/${part(each.key)}`}
                      title={String(each.value.content)}
                    >
                      <Time at={each.at} />{" "}
                      <span>
                        {EVENTS[each.event]} by {spaced(each.change.actor)}
                      </span>
                      {each.version > 1 && <span>version {each.version}</span>} <span>{each.change.reason}</span>
                    </Row>
                  ))}
                </Rows>
              </section>
            ))}
            {versions.length === limit && limit < MOST && (
              <Button variant="default" onClick={() => setLimit(Math.min(MOST, limit + 4 * STEP))}>
                Show more
              </Button>
            )}
          </>
        )}
      </Loaded>
    </>
  );
}
