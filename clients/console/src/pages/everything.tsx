// All that is remembered, whichever workflow learned it: one search, and the way of a record back and forward.

import { Group } from "@mantine/core";
import { useEffect, useState } from "react";
import { type Schemas, change, part, read, team } from "../api";
import { note, useAction, useCalm, useLoaded } from "../hooks";
import { Detail, Do, Empty, Failure, Field, Key, Listed, Marked, Row, Search, Section, Stale, Title, useFound } from "../parts";
import { type Link, Way } from "../way";

const BUDGET = 2000;

function Found({ question }: { question: string }) {
  const asked = { query: question, teams: team(), tokens: BUDGET, include_stale: true };
  const loaded = useLoaded((signal) => read<Schemas["Recalled"][]>("recall", asked, signal), [question]);
  useFound(loaded, question);
  return (
    <Listed of={loaded} label="Results" empty={<Empty>Nothing that is known bears on it.</Empty>}>
      {(each) => (
        <Row key={`${each.reference}#${each.part}`} href={`#/recall/${part(each.key)}`} title={<Marked text={each.text} query={question} />}>
          <span>{each.kind}</span> <span>{each.origin}</span> <span>
            score {each.score.toFixed(2)} ={" "}
            {Object.entries(each.scores)
              .map(([name, value]) => `${name} ${value.toFixed(2)}${name === "relevance" ? " of 1.50" : ""}`)
              .join(" × ")}
            {Object.values(each.scores).reduce((before, value) => before * value, 1) > 1 && ", 1 at most"}
          </span>
          <Stale why={each.stale} />
        </Row>
      )}
    </Listed>
  );
}

function OutOfDate() {
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

const KEEPS = { newer: "Keep the newer", older: "Keep the older", both: "Both hold" };

function Contradictions() {
  const asked = { teams: team() };
  const loaded = useLoaded((signal) => read<Schemas["Contradiction"][]>("contradictions", asked, signal), []);
  const action = useAction(loaded.again);
  return (
    <Section title="What may not hold together" id="contradictions">
      <Failure error={action.error} />
      <Listed of={loaded} label="What may not hold together" empty={<p>Nothing contradicts anything else.</p>}>
        {({ key, newer, older, why }) => (
          <li className="row" key={key}>
            <article aria-label={newer.text}>
              <p>
                <a href={`#/recall/${part(newer.key)}`}>{newer.text}</a>{" "}
                <span className="quiet">newer, {newer.origin}</span>
              </p>
              <p>
                <a href={`#/recall/${part(older.key)}`}>{older.text}</a>{" "}
                <span className="quiet">older, {older.origin}</span>
              </p>
              <p className="quiet">{why}</p>
              <Group gap="sm">
                {Object.entries(KEEPS).map(([keep, label]) => (
                  <Do
                    key={keep}
                    action={action}
                    work={() => change(`contradictions/${part(key)}/settle`, { keep, teams: [team()] })}
                    said={() => "Settled."}
                  >
                    {label}
                  </Do>
                ))}
              </Group>
            </article>
          </li>
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
      <Title>Recall</Title>
      <p>
        One search over all that is known: your facts, and what the team <strong>{team()}</strong> found out (cards,
        agreements, episodes, pairs). It gives what an agent is given that asks the same.
      </p>
      <Search label="Ask everything" value={question} set={set} />
      {calm ? (
        <Found question={calm} />
      ) : (
        <>
          <Contradictions />
          <OutOfDate />
        </>
      )}
    </>
  );
}

function Settle({ record, again }: { record: Link; again: () => void }) {
  const action = useAction(again);
  const [reason, set] = useState("");
  const settle = (keep: boolean) => () => change(`stale/${part(record.key)}/settle`, { keep, team: team(), reason });
  const renew = () => change(`stale/${part(record.key)}/renew`, { team: team(), reason });
  return (
    <section aria-label="Settle it">
      <p>{record.stale}</p>
      <Field label="Reason" value={reason} set={set} />
      <Group gap="sm" my="sm">
        <Do action={action} work={settle(true)} said={() => "It holds all the same."}>
          It still holds
        </Do>
        <Do action={action} work={settle(false)} said={() => "Taken back."}>
          Take it back
        </Do>
        {record.kind === "fact" && (
          <Do action={action} work={renew} said={() => "It says what its source says now."}>
            Renew it
          </Do>
        )}
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
    <Detail back="recall" title="what is recalled" id={id} load={(signal) => ways(id, signal)}>
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
