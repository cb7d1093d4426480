// One memory: what it says, where it comes from, what was made of it, its versions, and what can be done with it.

import { Button, Group, Textarea } from "@mantine/core";
import { type KeyboardEvent, useState } from "react";
import { type Schemas, change, part, read, team } from "../api";
import { type Action, focusHeading, leave, useAction } from "../hooks";
import {
  Confirm,
  Detail,
  Diff,
  Do,
  EVENTS,
  Facts,
  Failure,
  Field,
  Form,
  Key,
  Mark,
  Section,
  Tick,
  Time,
  Title,
  type Version as History,
  Versions,
  plural,
} from "../parts";
import { type Link, Way } from "../way";
import { WhoRead } from "./access";
import { WhereSaid, saidAt } from "./conversations";

type Record = Schemas["MemoryRecord"];
type Version = Schemas["Version"];
const ALIKE = 5;
const LEAST_ALIKE = 0.3;

/** Say what was true before, and until when. */
export const held = ({ content, until }: Schemas["Past"]) => `${until ? `Until ${until}` : "Before"}: ${content}`;

/** Say what was written, and which memories it may contradict. */
export function written(now: Schemas["Written"], said: string) {
  const beside = now.beside.map((each) => each.memory.content).join(" ");
  return beside ? `${said} It may contradict, or repeat in other words: ${beside}` : said;
}

/** Whether a person is asked about a memory as it stands, and what accepting it so is called. */
export const isToLookAt = ({ flag, unclear, may_contradict, asks }: Schemas["Memory"]) =>
  Boolean(flag || unclear) || may_contradict.length > 0 || asks.length > 0;
export const acceptLabel = ({ asks }: Schemas["Memory"]) => (asks.length > 0 ? "Keep it private" : "It is right");

interface Editing {
  record: Record;
  action: Action;
  close: () => void;
}

function Edit({ record, action, close }: Editing) {
  const [text, setText] = useState(record.memory.content);
  const [reason, setReason] = useState("");
  const body = { content: text, reason, expected_version: record.version };
  const save = () => {
    action.run(
      () => change<Schemas["Written"]>(`memories/${part(record.key)}/update`, body),
      (now) => written(now, `Saved as version ${now.version}.`),
    );
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
    if (event.key !== "Escape") return;
    event.preventDefault();
    close();
  };
  return (
    <Form
      label="Edit the memory"
      submit="Save"
      busy={action.busy}
      disabled={text === record.memory.content}
      onSend={save}
      onCancel={close}
      onKeyDown={pressed}
    >
      <Textarea
        label="What is remembered"
        autoFocus
        rows={4}
        required
        maxLength={8000}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Field label="Why (kept in the history)" value={reason} set={setReason} />
      {text !== record.memory.content && <Diff older={record.memory.content} newer={text} />}
    </Form>
  );
}

const REACH = `It erases the memory with all its versions, the waiting messages that tell it, and each turn of your
conversations that told or repeats it. It does not reach backups and exports, traces that were sent to LangSmith, the
logs of a model server, or what another message says in other words.`;

function Forget({ record, action, close }: Editing) {
  const [whole, setWhole] = useState(false);
  const said = (gone: Schemas["Erased"]) =>
    [
      `Forgotten: ${plural(gone.versions, "version")}, ${plural(gone.turns, "turn")} in ${plural(gone.threads.length, "thread")}.`,
      ...gone.left.map((each) => `Not cleaned: ${each}.`),
      ...gone.backups.map((each) => `A backup may still hold it: ${each}.`),
    ].join(" ");
  const yes = () => action.run(() => change<Schemas["Erased"]>(`memories/${part(record.key)}/forget`, { whole }), said);
  return (
    <Confirm title="Forget this memory?" yes="Forget it" busy={action.busy} onYes={yes} onNo={close}>
      <p>
        <strong>It cannot be undone.</strong> {REACH}
      </p>
      <Tick label="Also delete the conversations in which it was said" checked={whole} set={setWhole} />
    </Confirm>
  );
}

const source = ({ thread, messages }: Schemas["Source"]) =>
  (thread || messages.length > 0) && (
    <>
      {messages.map((each) => (
        <span key={each}>
          <a href={saidAt(thread, each)}>the message</a> <Key of={each} />{" "}
        </span>
      ))}
      {thread && messages.length === 0 && <a href={saidAt(thread, "")}>a conversation</a>}
    </>
  );

const text = (version: Version | undefined, name: string) => String(version?.value[name] ?? "");

/** What a page shows of a version; a quote that repeats the text, or the version before it, is left out. */
function shown(version: Version, before?: Version): History {
  const { change: made } = version;
  const quote = text(version, "quote");
  const said = [text(version, "content"), text(before, "quote")];
  return {
    number: version.version,
    title: EVENTS[version.event],
    at: version.at,
    actor: made.actor,
    model: made.model,
    text: text(version, "content"),
    facts: [
      ["Why", made.reason],
      ["Quote", quote && !said.includes(quote) && <q>{quote}</q>],
      ["Source", source(made.source)],
      ["In doubt", text(version, "flag")],
    ],
  };
}

function Actions({ record, action, open }: { record: Record; action: Action; open: (what: string) => void }) {
  const path = `memories/${part(record.key)}`;
  const undone = (now: Record | null) =>
    !now
      ? "All changes are taken back already."
      : now.live
        ? `Undone. Version ${now.version} says: ${now.memory.content}`
        : "Undone: it is retired, not recalled any more.";
  return (
    <Group gap="sm" my="sm">
      {record.live && (
        <Button variant="default" onClick={() => open("edit")}>
          Edit
        </Button>
      )}
      <Do
        action={action}
        work={() => change<Record | null>(`${path}/undo`, { expected_version: record.version })}
        said={undone}
      >
        Undo the latest change
      </Do>
      {record.live && (
        <Do
          action={action}
          work={() => change(`${path}/retire`)}
          said={() => "Retired: it is not recalled any more. Undo brings it back."}
        >
          Retire
        </Do>
      )}
      {record.memory.asks.map((team) => (
        <Do
          key={team}
          action={action}
          work={() => change(`promote/${part(record.key)}`, { team })}
          said={() => `Shared with ${team}, or proposed to it.`}
        >
          Share with {team}
        </Do>
      ))}
      {isToLookAt(record.memory) && (
        <Do action={action} work={() => change(`${path}/accept`)} said={() => "Accepted as it stands."}>
          {acceptLabel(record.memory)}
        </Do>
      )}
      <Button variant="outline" color="red" onClick={() => open("forget")}>
        Forget…
      </Button>
    </Group>
  );
}

interface Whole {
  record: Record;
  history: Version[];
  others: Record[];
  alike: Record[];
  back: Link[];
  forward: Link[];
}

/** What it said before it changed, the latest first. */
function Before({ past }: { past: Schemas["Past"][] }) {
  if (past.length === 0) return null;
  return (
    <Section title="What held before" id="before">
      <ul>
        {past.map((each, at) => (
          <li key={at}>
            {held(each)} {each.since && <span className="quiet">from {each.since}</span>}
          </li>
        ))}
      </ul>
    </Section>
  );
}

const Names = ({ of }: { of: string[] }) =>
  of.length > 0 && (
    <span className="chips">
      {of.map((name) => (
        <a key={name} className="chip" href={`#/memories?name=${part(name)}`}>
          {name}
        </a>
      ))}
    </span>
  );

function Others({ title, id, of }: { title: string; id: string; of: Record[] }) {
  if (of.length === 0) return null;
  return (
    <Section title={title} id={id}>
      <ul>
        {of.map((each) => (
          <li key={each.key}>
            <a href={`#/memories/${part(each.key)}`}>{each.memory.content}</a>{" "}
            <span className="quiet">
              <Time at={each.at} />
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Said({ memory }: { memory: Schemas["Memory"] }) {
  if (memory.statements.length < 2) return null;
  return (
    <Section title="Put together from" id="said">
      <ul>
        {memory.statements.map((each, at) => (
          <li key={at}>
            {each.content} <q>{each.quote}</q>{" "}
            <span className="quiet">
              <Time at={each.time} />{" "}
            {each.message_id && <a href={saidAt(memory.thread, each.message_id)}>the message</a>}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

interface OfPage {
  again: () => void;
  editing: boolean;
}

function One({ record, history, others, alike, back, forward, again, editing }: Whole & OfPage) {
  const [opened, open] = useState(editing ? "edit" : "");
  const close = () => {
    open("");
    focusHeading();
  };
  const action = useAction((result) => {
    if (result && typeof result === "object" && "turns" in result) leave("memories");
    else {
      close();
      again();
    }
  });
  const { memory } = record;
  return (
    <>
      <Title>{memory.content}</Title>
      {!record.live && (
        <p>
          <Mark>Retired: not recalled any more.</Mark>
        </p>
      )}
      <Actions record={record} action={action} open={open} />
      <Failure error={action.error} />
      {opened === "edit" && <Edit record={record} action={action} close={close} />}
      {opened === "forget" && <Forget record={record} action={action} close={close} />}
      <div className="two">
        <div className="about">
          <Facts
            of={[
              ["Kind", memory.kind === "semantic" ? "a fact" : "an event"],
              ["Changed", <Time at={record.at} />],
              ["Holds from", memory.since],
              ["Holds until", memory.until],
              ["Names", memory.entities.length > 0 && <Names of={memory.entities} />],
              ["Relations", memory.relations.map((each) => each.replace(/ *\| */g, " ")).join("; ")],
              ["Quote", memory.quote && memory.quote !== memory.content && <q>{memory.quote}</q>],
              ["Read by", memory.read_by],
              ["In doubt", [memory.flag, memory.unclear].filter(Boolean).join(" ")],
              ["Key", <Key of={record.key} />],
            ]}
          />
        </div>
        <div className="rest">
          <Others title="May contradict" id="contradicts" of={others} />
          <Before past={memory.past} />
          <Said memory={memory} />
          {memory.message_id && (
            <WhereSaid memory={record.key} thread={memory.thread} message={memory.message_id} />
          )}
          <Versions
            of={history.map((each, at) => shown(each, history[at - 1]))}
            action={action}
            back={(number) =>
              change<Record>(`memories/${part(record.key)}/rollback`, {
                to_version: number,
                expected_version: record.version,
              })
            }
            said={(now, number) => `Version ${now.version} says what version ${number} said.`}
          />
          <Way back={back} forward={forward} />
        </div>
        <div>
          <WhoRead id={record.key} />
          <Others title="Close to it in meaning" id="alike" of={alike} />
        </div>
      </div>
    </>
  );
}

async function whole(id: string, signal: AbortSignal): Promise<Whole> {
  const path = `memories/${part(id)}`;
  const trace = (forward: boolean) => read<Link[]>(`trace/${part(id)}`, { forward, team: team() }, signal);
  const [record, history] = await Promise.all([
    read<Record>(path, {}, signal),
    read<Version[]>(`${path}/history`, {}, signal),
  ]);
  const linked = record.memory.may_contradict.map((key) => read<Record>(`memories/${part(key)}`, {}, signal));
  const asked = { query: record.memory.content, limit: ALIKE + 1, min_similarity: LEAST_ALIKE };
  const [others, found, back, forward] = await Promise.all([
    Promise.all(linked),
    read<Record[]>("memories/search", asked, signal),
    trace(false),
    trace(true),
  ]);
  const shownAbove = new Set([id, ...others.map(({ key }) => key)]);
  const alike = found.filter(({ key }) => !shownAbove.has(key)).slice(0, ALIKE);
  return { record, history, others, alike, back: back.slice(1), forward: forward.slice(1) };
}

export function Memory({ id, query }: { id: string; query: URLSearchParams }) {
  return (
    <Detail back="memories" title="the memories" id={id} load={(signal) => whole(id, signal)}>
      {(found, again) => <One {...found} again={again} editing={query.has("edit") && found.record.live} />}
    </Detail>
  );
}
