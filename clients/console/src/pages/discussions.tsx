// Discussions: their turns, and what each agent kept in its memory after each.

import { NativeSelect } from "@mantine/core";
import { useState } from "react";
import { type Schemas, part, read } from "../api";
import { useLoaded } from "../hooks";
import { Choices, Detail, Diff, Facts, Listed, Loaded, Mark, Row, Section, Time, Title, plural } from "../parts";

type Discussion = Schemas["Discussion"];
type Turn = Schemas["Turn"];

export function DiscussionsPage() {
  const loaded = useLoaded(
    (signal) => read<Discussion[]>("discussions", { limit: 1000 }, signal).then((found) => found.toReversed()),
    [],
  );
  return (
    <>
      <Title>Discussions</Title>
      <Listed of={loaded} label="Discussions" empty={<p>Nothing has been discussed yet.</p>}>
        {(each) => (
          <Row key={each.id} href={`#/discussions/${part(each.id)}`} title={each.task}>
            <Mark>{each.ended || "not ended"}</Mark> <code>{each.id}</code> <span>{plural(each.turns, "turn")}</span>{" "}
            <Time at={each.at} />
          </Row>
        )}
      </Listed>
    </>
  );
}

const shown = (memory: unknown) =>
  JSON.stringify(memory, null, 2)
    .replace(/[{}[\]",]/g, "")
    .replace(/^\s*\n/gm, "");

function Memory({ discussion, agent }: { discussion: string; agent: string }) {
  const path = `discussions/${part(discussion)}/memories/${part(agent)}/history`;
  const loaded = useLoaded((signal) => read<Schemas["MemoryVersion"][]>(path, {}, signal), [path]);
  const [chosen, choose] = useState<number | null>(null);
  return (
    <Loaded of={loaded}>
      {(versions) => {
        const at = chosen === null ? versions.length - 1 : versions.findIndex(({ version }) => version === chosen);
        const now = versions[at];
        if (!now) return <p>Nothing was remembered.</p>;
        return (
          <>
            <NativeSelect
              label="After turn"
              value={String(now.version)}
              onChange={(event) => choose(Number(event.currentTarget.value))}
              data={versions.map((each) => ({ value: String(each.version), label: String(each.turn) }))}
            />
            <p className="quiet">
              <Time at={now.at} /> <span>{now.reason}</span>
            </p>
            <Diff older={shown((versions[at - 1] ?? now).memory)} newer={shown(now.memory)} />
          </>
        );
      }}
    </Loaded>
  );
}

function Agents({ discussion, speakers }: { discussion: string; speakers: string[] }) {
  const [agent, choose] = useState(speakers[0] ?? "");
  if (!agent) return null;
  return (
    <Section title="Memories by turn" id="memories">
      <Choices>
        <NativeSelect
          label="Agent"
          value={agent}
          onChange={(event) => choose(event.currentTarget.value)}
          data={speakers}
        />
        <Memory key={agent} discussion={discussion} agent={agent} />
      </Choices>
    </Section>
  );
}

function One({ discussion, turns }: { discussion: Discussion; turns: Turn[] }) {
  const speakers = [...new Set(turns.filter((each) => !each.person).map((each) => each.speaker))];
  return (
    <>
      <Title>{discussion.task}</Title>
      <Facts
        of={[
          ["Id", <code>{discussion.id}</code>],
          ["Begun", <Time at={discussion.at} />],
          ["Ended", discussion.ended],
          ["Lacks", discussion.lacks],
          ["Memory", discussion.memory],
        ]}
      />
      <Agents discussion={discussion.id} speakers={speakers} />
      <Section title="Turns" id="turns">
        <ol className="versions">
          {turns.map((each) => (
            <li key={each.number}>
              <article aria-label={`Turn ${each.number}`}>
                <h3>
                  {each.number}. {each.title}
                  {each.person && " (a person)"}
                  {each.accept && " – accepts"}
                  {each.finalize && " – finalizes"}
                </h3>
                <p className="diff">{each.message}</p>
              </article>
            </li>
          ))}
        </ol>
      </Section>
    </>
  );
}

async function whole(id: string, signal: AbortSignal) {
  const path = `discussions/${part(id)}`;
  const [discussion, turns] = await Promise.all([
    read<Discussion>(path, {}, signal),
    read<Turn[]>(`${path}/turns`, {}, signal),
  ]);
  return { discussion, turns };
}

export function DiscussionPage({ id }: { id: string }) {
  return (
    <Detail back="discussions" title="the discussions" id={id} load={(signal) => whole(id, signal)}>
      {(both) => <One {...both} />}
    </Detail>
  );
}
