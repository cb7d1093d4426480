// The latest changes of a user's memories.

import { Button } from "@mantine/core";
import { useState } from "react";
import { type Schemas, part, read } from "../api";
import { useLoaded } from "../hooks";
import { Loaded, Row, Rows, Time, Title, plural } from "../parts";
import { EVENTS } from "./memory";

const STEP = 50;
const MOST = 1000;

export function Timeline() {
  const [limit, setLimit] = useState(STEP);
  const load = (signal: AbortSignal) => read<Schemas["Version"][]>("memories/changes", { limit }, signal);
  const loaded = useLoaded(load, [limit]);
  return (
    <>
      <Title>Timeline</Title>
      <Loaded of={loaded}>
        {(versions) => (
          <>
            <p className="quiet">The latest {plural(versions.length, "change")}</p>
            <Rows label="Changes">
              {versions.map((each) => (
                <Row
                  key={each.key + each.version}
                  href={`#/memories/${part(each.key)}`}
                  title={String(each.value.content)}
                >
                  <Time at={each.at} />{" "}
                  <span>
                    {EVENTS[each.event]} by {each.change.actor}
                  </span>
                  <span>version {each.version}</span> <span>{each.change.reason}</span>
                </Row>
              ))}
            </Rows>
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
