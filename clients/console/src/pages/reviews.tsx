// What waits for a person: runs that were interrupted with a question, and disputes that no run waits for.

import { Group, NativeSelect, Radio, Text, Textarea } from "@mantine/core";
import { useState } from "react";
import { type Problem, type Schemas, change, part, read, runs, team } from "../api";
import { leave, useAction, useLoaded } from "../hooks";
import { Detail, Do, Failure, Field, Form, Key, Loaded, Row, Rows, Section, Time, Title, words } from "../parts";

const MOST = 100;
type Proposal = Schemas["MemoryRecord"];
type Args = { [name: string]: unknown };
interface Question {
  action_requests?: { name: string; args: Args; description?: string }[];
  review_configs?: { allowed_decisions: string[]; args_schema?: { properties?: { [name: string]: Asked } } }[];
  dispute?: { id: string };
  wrong?: string;
}
interface Asked {
  description?: string;
  enum?: string[];
}
interface Thread {
  thread_id: string;
  status: string;
  updated_at: string;
  metadata?: { graph_id?: string };
  interrupts?: { [task: string]: { value: Question }[] };
}

const asked = (thread: Thread): Question => Object.values(thread.interrupts ?? {}).flat()[0]?.value ?? {};
const about = (question: Question) => question.action_requests?.[0]?.description ?? "";
const first = (text: string) => text.split("\n")[0];

async function waiting(signal: AbortSignal) {
  const search = { status: "interrupted", limit: MOST, sort_by: "updated_at", sort_order: "desc" };
  const unless = (error: Problem) => {
    if (error.status === 403) return []; // who may not review them
    throw error;
  };
  const hasRuns = (await runs<{ flags?: { assistants?: boolean } }>("GET", "info", null, signal)).flags?.assistants;
  const [threads, disputes, proposals] = await Promise.all([
    hasRuns ? runs<Thread[]>("POST", "threads/search", search, signal) : [],
    read<Schemas["Dispute"][]>("disputes", { status: "escalated" }, signal),
    read<Proposal[]>("proposals", { team: team() }, signal).catch(unless),
  ]);
  const held = new Set(threads.map((each) => asked(each).dispute?.id));
  return { threads, disputes: disputes.filter(({ id }) => !held.has(id)), proposals, hasRuns };
}

/** What members propose as facts of the team, with the decision on each. */
function Proposals({ of, again }: { of: Proposal[]; again: () => void }) {
  const [reason, set] = useState("");
  const action = useAction(again);
  const decide = (key: string, accept: boolean) => () =>
    change<Proposal>(`proposals/${part(key)}/review`, { team: team(), accept, reason });
  if (of.length === 0) return null;
  return (
    <Section title="Proposed as facts of the team" id="proposals">
      <Field label="Reason" value={reason} set={set} />
      <Failure error={action.error} />
      <Rows label="Proposed as facts of the team">
        {of.map(({ key, at, memory }) => (
          <li className="row" key={key}>
            <article aria-label={memory.content}>
              <p>{memory.content}</p>
              <p className="quiet">
                proposed <Time at={at} />
              </p>
              <Group gap="sm">
                <Do action={action} work={decide(key, true)} said={() => "It is a fact of the team now."}>
                  Accept
                </Do>
                <Do action={action} work={decide(key, false)} said={() => "Turned down."}>
                  Turn down
                </Do>
              </Group>
            </article>
          </li>
        ))}
      </Rows>
    </Section>
  );
}

export function Reviews() {
  const loaded = useLoaded(waiting, []);
  return (
    <>
      <Title>Reviews</Title>
      <p className="quiet">
        Facts that members propose, runs that stopped to ask a person, and disputes that the tests did not decide. A run
        goes on with your answer.
      </p>
      <Loaded of={loaded}>
        {({ threads, disputes, proposals, hasRuns }) =>
          threads.length + disputes.length + proposals.length === 0 ? (
            <p>
              {hasRuns
                ? "Nothing waits for you."
                : "No dispute waits for you. Runs that ask a person are on the LangGraph server (make dev)."}
            </p>
          ) : (
            <>
              <Proposals of={proposals} again={loaded.again} />
              <Rows label="What waits">
                {threads.map((each) => (
                  <Row
                    key={each.thread_id}
                    href={`#/reviews/${part(each.thread_id)}`}
                    title={first(about(asked(each))) || "A question"}
                  >
                    <span>{words(each.metadata?.graph_id ?? "run")}</span> <Time at={each.updated_at} />
                  </Row>
                ))}
                {disputes.map((each) => (
                  <Row key={each.id} href={`#/disputes/${part(each.id)}`} title={each.new.claim}>
                    <span>Dispute</span> <Time at={each.opened_at} />
                  </Row>
                ))}
              </Rows>
            </>
          )
        }
      </Loaded>
    </>
  );
}

const LABELS: { [kind: string]: string } = {
  approve: "Approve it",
  edit: "Change it",
  reject: "Reject it",
  respond: "Say something",
};
const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** What was typed, as JSON where the question's own value was no text. */
function typed(text: string, before: unknown): unknown {
  if (typeof before === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

type Texts = { [name: string]: string };
interface Editing {
  args: Args;
  fields: { [name: string]: Asked };
  texts: Texts;
  set: (texts: Texts) => void;
}

function Fields({ args, fields, texts, set }: Editing) {
  return Object.entries(texts).map(([name, text]) => {
    const { description = "", enum: choices } = fields[name] ?? {};
    const given = {
      label: words(name),
      value: text,
      description: `${description}${typeof args[name] !== "string" && !choices ? " (JSON)" : ""}` || undefined,
      onChange: (event: { currentTarget: { value: string } }) => set({ ...texts, [name]: event.currentTarget.value }),
    };
    if (choices) return <NativeSelect key={name} {...given} data={choices} />;
    return <Textarea key={name} {...given} rows={Math.min(14, 1 + text.split("\n").length)} />;
  });
}

interface Waited {
  __error__?: { message?: string };
  __interrupt__?: { value: Question }[];
}

async function answer(thread: string, decision: object) {
  const [latest] = await runs<{ assistant_id: string; kwargs?: { context?: object } }[]>(
    "GET",
    `threads/${thread}/runs?limit=1`,
  );
  const body = {
    assistant_id: latest?.assistant_id,
    context: latest?.kwargs?.context,
    on_disconnect: "continue",
    command: { resume: { decisions: [decision] } },
  };
  const said = await runs<Waited>("POST", `threads/${thread}/runs/wait`, body);
  if (said?.__error__) throw new Error(said.__error__.message ?? "The run failed.");
  return said?.__interrupt__?.[0]?.value;
}

function Answer({ thread, question, again }: { thread: string; question: Question; again: () => void }) {
  const [request = { name: "", args: {} }] = question.action_requests ?? [];
  const [config] = question.review_configs ?? [];
  const allowed = config?.allowed_decisions ?? ["respond"];
  const fields = config?.args_schema?.properties ?? {};
  const empty = Object.fromEntries(Object.keys(fields).map((name) => [name, ""]));
  const args: Args = { ...empty, ...request.args };
  const [kind, choose] = useState(allowed[0] ?? "");
  const [texts, set] = useState<Texts>(
    Object.fromEntries(Object.entries(args).map(([name, value]) => [name, shown(value)])),
  );
  const [message, write] = useState("");
  const action = useAction((next) => (next ? again() : leave("reviews")));
  const send = () => {
    const given = Object.entries(texts)
      .filter(([name, text]) => text !== "" || request.args[name])
      .map(([name, text]) => [name, typed(text, request.args[name] ?? "")]);
    const edited = { edited_action: { name: request.name, args: Object.fromEntries(given) } };
    const decision = { type: kind, message, ...(kind === "edit" && edited) };
    action.run(
      () => answer(thread, decision),
      (next) => (next ? "There is a question again." : "Answered."),
    );
  };
  return (
    <Form label="Your answer" submit="Answer" busy={action.busy} error={action.error} onSend={send}>
      <Radio.Group label="Your answer" value={kind} onChange={choose}>
        {allowed.map((each) => (
          <Radio key={each} my={4} value={each} label={LABELS[each] ?? words(each)} />
        ))}
      </Radio.Group>
      {kind === "edit" && <Fields args={args} fields={fields} texts={texts} set={set} />}
      <Textarea
        label="Why, or what you want to say"
        rows={2}
        maxLength={2000}
        required={kind === "respond"}
        value={message}
        onChange={(event) => write(event.currentTarget.value)}
      />
      {action.busy && <Text c="dimmed">The run goes on…</Text>}
    </Form>
  );
}

function One({ thread, again }: { thread: Thread; again: () => void }) {
  const question = asked(thread);
  const text = about(question);
  if (thread.status !== "interrupted") {
    return (
      <>
        <Title>Answered</Title>
        <p>This run waits for nobody.</p>
      </>
    );
  }
  return (
    <>
      <Title>{first(text) || "A question"}</Title>
      <p className="quiet">
        <span>{words(thread.metadata?.graph_id ?? "run")}</span> <Time at={thread.updated_at} />{" "}
        <Key of={thread.thread_id} />
      </p>
      <p className="diff">{text.split("\n").slice(1).join("\n").trim()}</p>
      {question.wrong && <Failure error={{ message: question.wrong } as Problem} />}
      <Answer key={thread.updated_at} thread={part(thread.thread_id)} question={question} again={again} />
    </>
  );
}

export function ReviewPage({ id }: { id: string }) {
  return (
    <Detail
      back="reviews"
      title="the reviews"
      id={id}
      load={(signal) => runs<Thread>("GET", `threads/${part(id)}`, null, signal)}
    >
      {(thread, again) => <One thread={thread} again={again} />}
    </Detail>
  );
}
