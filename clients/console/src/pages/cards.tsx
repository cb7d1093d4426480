// A team's knowledge cards, with what they rest on, and what a person decides about them.

import { Button, Group } from "@mantine/core";
import { useEffect, useState } from "react";
import { type Schemas, change, part, read } from "../api";
import { type Action, focusHeading, note, useAction, useCalm, useLoaded } from "../hooks";
import {
  Cells,
  Choice,
  Choices,
  Detail,
  Do,
  Empty,
  Facts,
  Failure,
  Field,
  Form,
  Key,
  List,
  Loaded,
  Mark,
  Pages,
  Row,
  Search,
  Section,
  Tick,
  Time,
  Title,
  Versions,
  percent,
  plural,
  useFound,
} from "../parts";

type Card = Schemas["Card"];
type Version = Schemas["CardVersion"];
const SIZE = 50;
const STATUSES = ["provisional", "verified", "disputed", "deprecated", "archived"];

function CardRow({ card, score }: { card: Card; score?: number }) {
  const { success_count: good, failure_count: bad } = card.evidence;
  return (
    <Row href={`#/cards/${part(card.id)}`} title={card.claim}>
      <Mark>{card.status}</Mark> <Key of={card.id} /> <span>confidence {percent(card.confidence)}</span>{" "}
      <span>
        {good} of {good + bad} tasks succeeded
      </span>
      {card.scope && <span>{card.scope}</span>} {score ? <span>score {score.toFixed(2)}</span> : null}
    </Row>
  );
}

const Found = ({ found, label }: { found: { card: Card; score?: number }[]; label: string }) => (
  <List of={found} label={label} empty={<Empty command="mneme learn --suite story">No card is here. A card is what a team learned from its tasks: when which way works, with the evidence for it. To see some come about:</Empty>}>
    {({ card, score }) => <CardRow key={card.id} card={card} score={score} />}
  </List>
);

function All({ status, offset, goTo }: { status: string; offset: number; goTo: (offset: number) => void }) {
  const asked = { status, offset, limit: SIZE + 1 };
  const loaded = useLoaded((signal) => read<Card[]>("cards", asked, signal), [status, offset]);
  return (
    <Loaded of={loaded}>
      {(found) => (
        <>
          <Found found={found.slice(0, SIZE).map((card) => ({ card }))} label="Cards" />
          <Pages offset={offset} size={SIZE} count={offset + found.length} go={goTo} />
        </>
      )}
    </Loaded>
  );
}

function Results({ task }: { task: string }) {
  const load = (signal: AbortSignal) => read<Schemas["Retrieved"][]>("cards/search", { query: task, limit: 20 }, signal);
  const loaded = useLoaded(load, [task]);
  useFound(loaded, task);
  return <Loaded of={loaded}>{(found) => <Found found={found} label="Results" />}</Loaded>;
}

export function Cards({ query: given }: { query: URLSearchParams }) {
  const [query, setQuery] = useState(given.get("q") ?? "");
  const [status, setStatus] = useState(given.get("status") ?? "");
  const [offset, setOffset] = useState(0);
  const calm = useCalm(query.trim());
  useEffect(() => note(`cards?${new URLSearchParams({ q: calm, status })}`), [calm, status]);
  return (
    <>
      <Title>Cards</Title>
      <Search label="Search for a task" value={query} set={setQuery} />
      {calm ? (
        <Results task={calm} />
      ) : (
        <>
          <Choices>
            <Choice
              label="Status"
              value={status}
              set={(chosen) => {
                setStatus(chosen);
                setOffset(0);
              }}
              data={[{ value: "", label: "all" }, ...STATUSES]}
            />
          </Choices>
          <All status={status} offset={offset} goTo={setOffset} />
        </>
      )}
    </>
  );
}

const RUBRIC = {
  solved: "It solved the task",
  faster_or_novel: "It is faster, or new",
  no_new_failures: "It brings no new failures",
  reusable: "It can be used again",
};

function Promote({ card, action, close }: { card: Card; action: Action; close: () => void }) {
  const [rubric, set] = useState<{ [name: string]: boolean }>(
    Object.fromEntries(Object.keys(RUBRIC).map((name) => [name, false])),
  );
  const [by, setBy] = useState("");
  const [reason, setReason] = useState("");
  const send = () => {
    const body = { approval: { by, approved: true, rubric, reason }, reason };
    action.run(
      () => change(`cards/${part(card.id)}/promote`, body),
      () => "Promoted: it is verified.",
    );
  };
  return (
    <Form label="Promote the card" submit="Promote" busy={action.busy} onSend={send} onCancel={close}>
      <fieldset>
        <legend>What it rests on</legend>
        {Object.entries(RUBRIC).map(([name, label]) => (
          <Tick
            key={name}
            my={4}
            label={label}
            checked={rubric[name] ?? false}
            set={(is) => set({ ...rubric, [name]: is })}
          />
        ))}
      </fieldset>
      <Field label="Who approves" required maxLength={100} value={by} set={setBy} />
      <Field label="Why" value={reason} set={setReason} />
    </Form>
  );
}

const rule = (each: Schemas["Rule"]) => `When ${each.condition}: ${each.pattern}`;
const failure = (each: Schemas["FailureMode"]) => `When ${each.condition}: ${each.impact} ${each.mitigation}`;
const attempt = (each: Schemas["DeprecatedApproach"]) =>
  `${each.approach}${each.condition ? ` (when ${each.condition})` : ""}: ${each.reason}`;

/** What a person reads of a card, as one text, so that versions can be compared by word. */
function told(card: Card) {
  const lines = [
    card.claim,
    card.rationale,
    `status: ${card.status}`,
    `confidence: ${percent(card.confidence)}`,
    ...card.rules.map(rule),
    ...card.failure_modes.map((each) => `Fails: ${failure(each)}`),
  ];
  return lines.filter(Boolean).join("\n");
}

function Evidence({ of }: { of: Schemas["Evidence"] }) {
  return (
    <Section title="Evidence" id="evidence">
      <p>
        {plural(of.success_count, "success", "successes")}, {plural(of.failure_count, "failure")}.
      </p>
      {of.recent.length > 0 && (
        <Cells head={["Task", "Outcome", "Confidence"]} caption="The latest tasks">
          {of.recent.map((each) => (
            <tr key={each.task}>
              <td>{each.task}</td>
              <td>{each.success ? "success" : "failure"}</td>
              <td>{percent(each.confidence)}</td>
            </tr>
          ))}
        </Cells>
      )}
    </Section>
  );
}

function Actions({ card, action, promote }: { card: Card; action: Action; promote: () => void }) {
  const [reason, setReason] = useState("");
  const act = (name: string, label: string, said: string) => (
    <Do action={action} work={() => change(`cards/${part(card.id)}/${name}`, { reason })} said={() => said}>
      {label}
    </Do>
  );
  return (
    <Group gap="sm" align="flex-end" my="sm">
      <Field label="Reason for what you do" value={reason} set={setReason} />
      {card.status === "provisional" && (
        <Button variant="default" onClick={promote}>
          Promote…
        </Button>
      )}
      {["deprecated", "archived"].includes(card.status)
        ? act("restore", "Restore", "Restored.")
        : act("deprecate", "Deprecate", "Deprecated: it is not shown any more.")}
      {card.flags.length > 0 && act("clear-flag", "It may be shown", "The flag is cleared.")}
    </Group>
  );
}

const Items = ({ of }: { of: React.ReactNode[] }) => (
  <ul>
    {of.map((each, at) => (
      <li key={at}>{each}</li>
    ))}
  </ul>
);
const listed = (of: React.ReactNode[]) => of.length > 0 && <Items of={of} />;

interface Whole {
  card: Card;
  history: Version[];
  disputes: Schemas["Dispute"][];
}

function One({ card, history, disputes, again }: Whole & { again: () => void }) {
  const [promoting, promote] = useState(false);
  const close = () => {
    promote(false);
    focusHeading();
  };
  const action = useAction(() => {
    close();
    again();
  });
  return (
    <>
      <Title>{card.claim}</Title>
      <p>
        <Mark>{card.status}</Mark>
      </p>
      <Actions card={card} action={action} promote={() => promote(true)} />
      <Failure error={action.error} />
      {promoting && <Promote card={card} action={action} close={close} />}
      <Facts
        of={[
          ["Id", <Key of={card.id} />],
          ["Why", card.rationale],
          ["Scope", card.scope],
          ["Tags", card.tags.join(", ")],
          ["Confidence", percent(card.confidence)],
          ["Rules", listed(card.rules.map(rule))],
          ["Fails", listed(card.failure_modes.map(failure))],
          ["Tried before", listed(card.deprecated_approaches.map(attempt))],
          ["Owner", card.owner],
          ["Valid for", card.valid_for],
          ["Expires", card.expires_at && <Time at={card.expires_at} />],
          [
            "Ratings",
            listed(
              card.ratings.map((each) => `${each.by}: ${each.good ? "it served" : "it did not serve"} ${each.comment}`),
            ),
          ],
          ["Made by", card.provenance.created_by],
          ["Deprecated", card.deprecated_because],
          ["Superseded by", card.superseded_by],
          ["Flags", listed(card.flags)],
          [
            "Disputes",
            listed(
              disputes.map((each) => (
                <a key={each.id} href={`#/disputes/${part(each.id)}`}>
                  {each.status}: {each.new.claim}
                </a>
              )),
            ),
          ],
        ]}
      />
      <Evidence of={card.evidence} />
      <Versions
        of={history.map(({ card: then, at, actor, model, reason, tasks }) => ({
          number: then.version,
          at,
          actor,
          model,
          text: told(then),
          facts: [
            ["Why", reason],
            ["Tasks", tasks.join(", ")],
          ],
        }))}
        action={action}
        back={(number) => change<Card>(`cards/${part(card.id)}/rollback`, { to_version: number })}
        said={(now, number) => `Version ${now.version} is as version ${number} was.`}
      />
    </>
  );
}

async function whole(id: string, signal: AbortSignal): Promise<Whole> {
  const path = `cards/${part(id)}`;
  const [card, history] = await Promise.all([
    read<Card>(path, {}, signal),
    read<Version[]>(`${path}/history`, {}, signal),
  ]);
  return { card, history, disputes: await read("disputes", { card_id: card.id }, signal) };
}

export function CardPage({ id }: { id: string }) {
  return (
    <Detail back="cards" title="the cards" id={id} load={(signal) => whole(id, signal)}>
      {(all, again) => <One {...all} again={again} />}
    </Detail>
  );
}
