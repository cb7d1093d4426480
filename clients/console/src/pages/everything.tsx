// All that is remembered, whichever workflow learned it: one search, and the way of a record back and forward.

import { Group, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { type Schemas, change, part, read, team } from "../api";
import { note, useAction, useCalm, useLoaded } from "../hooks";
import { Detail, Do, Failure, Key, Listed, Mark, Row, Search, Section, Title, useFound } from "../parts";
import { type Link, Way } from "../way";

const BUDGET = 2000;

function Found({ question }: { question: string }) {
  const asked = { question, teams: team(), budget: BUDGET, include_stale: true };
  const loaded = useLoaded((signal) => read<Schemas["Recalled"][]>("recall", asked, signal), [question]);
  useFound(loaded, question);
  return (
    <Listed of={loaded} label="Results" empty={<p>Nothing that is known bears on it.</p>}>
      {(each) => (
        <Row key={`${each.reference}#${each.part}`} href={`#/recall/${part(each.key)}`} title={each.text}>
          <span>{each.kind}</span> <span>{each.origin}</span> <span>score {each.score.toFixed(2)}</span>
          {each.stale && (
            <>
              <Mark>out of date</Mark> <span>{each.stale}</span>
            </>
          )}
        </Row>
      )}
    </Listed>
  );
}

function Stale() {
  const loaded = useLoaded((signal) => read<Link[]>("stale", { team: team() }, signal), []);
  return (
    <Section title="Out of date" id="stale">
      <Listed of={loaded} label="Out of date" empty={<p>Everything rests on what holds.</p>}>
        {(each) => (
          <Row key={each.key} href={`#/recall/${part(each.key)}`} title={each.text || each.key}>
            <span>{each.kind}</span> <span>{each.stale}</span>
          </Row>
        )}
      </Listed>
    </Section>
  );
}

export function Everything({ query: given }: { query: URLSearchParams }) {
  const [question, set] = useState(given.get("q") ?? "");
  const calm = useCalm(question.trim());
  useEffect(() => note(calm ? `recall?q=${part(calm)}` : "recall"), [calm]);
  return (
    <>
      <Title>Everything</Title>
      <p>
        Your facts, and what the team <strong>{team()}</strong> found out: cards, agreements, episodes, pairs.
      </p>
      <Search label="Ask everything" value={question} set={set} />
      {calm && <Found question={calm} />}
      <Stale />
    </>
  );
}

function Settle({ record, again }: { record: Link; again: () => void }) {
  const action = useAction(again);
  const [reason, set] = useState("");
  const settle = (keep: boolean) => () => change(`stale/${part(record.key)}/settle`, { keep, team: team(), reason });
  return (
    <section aria-label="Settle it">
      <p>{record.stale}</p>
      <TextInput label="Reason" value={reason} onChange={(event) => set(event.currentTarget.value)} />
      <Group gap="sm" my="sm">
        <Do action={action} work={settle(true)} said={() => "It holds all the same."}>
          It still holds
        </Do>
        <Do action={action} work={settle(false)} said={() => "Taken back."}>
          Take it back
        </Do>
      </Group>
      <Failure error={action.error} />
    </section>
  );
}

async function ways(id: string, signal: AbortSignal) {
  const trace = (forward: boolean) => read<Link[]>(`trace/${part(id)}`, { forward, team: team() }, signal);
  const [[record, ...back], [, ...forward]] = await Promise.all([trace(false), trace(true)]);
  return { record: record as Link, back, forward };
}

export function TracePage({ id }: { id: string }) {
  return (
    <Detail back="recall" title="everything" id={id} load={(signal) => ways(id, signal)}>
      {({ record, back, forward }, again) => (
        <>
          <Title>{record.text || record.key}</Title>
          <p className="quiet">
            <span>{record.kind}</span> <Key of={record.key} /> <span>{record.owner}</span> <span>{record.made}</span>
          </p>
          {record.stale && <Settle record={record} again={again} />}
          <Way back={back} forward={forward} />
        </>
      )}
    </Detail>
  );
}
