// Conversations: what was said, what was remembered of it, and what each reply was shown.

import { useEffect } from "react";
import { type Schemas, part, read } from "../api";
import { useLoaded } from "../hooks";
import { Detail, Empty, Failure, Key, ListPage, Mark, Row, Section, Time, Title, plural } from "../parts";

type Record = Schemas["MemoryRecord"];
export type Known = Map<string, Record>;
type Turn = Schemas["ConversationTurn"];
type Summary = Schemas["ConversationSummary"];
const MOST = 200;
const KNOWN = 1000; // memories whose texts are known; of others the key is shown
const AROUND = 4; // turns around a message, where a memory's page shows them
const NONE = "-"; // in the address of a message that is of no thread

/** The address of a message in its conversation. */
export const saidAt = (thread: string, message: string) =>
  `#/conversations/${part(thread || NONE)}${message ? `?message=${part(message)}` : ""}`;

/** What a person calls a conversation. */
const called = (thread: string, name: string) => (name || thread).split("/").at(-1)?.slice(0, 24) ?? "";
const door = (thread: string, name: string) => (name || thread).split("/").slice(0, -1)[0] ?? "";

export const Conversations = () => (
  <ListPage
    label="Conversations"
    load={(signal) => read<Summary[]>("threads/conversations", { limit: MOST }, signal)}
    empty={
      <Empty command="mneme chat">
        Nothing was said yet. Here is each conversation with the chatbot, a chat client, an editor or your program, with
        what was remembered of each message. To begin one:
      </Empty>
    }
  >
    {(each) => (
      <Row key={each.thread} href={saidAt(each.thread, "")} title={each.begins_with}>
        {door(each.thread, each.name) && <Mark>{door(each.thread, each.name)}</Mark>}
        <code>{called(each.thread, each.name)}</code> <span>{plural(each.messages, "message")}</span>
        <Time at={each.last} />
      </Row>
    )}
  </ListPage>
);

const sum = (of: number[]) => of.reduce((before, each) => before + each, 0);
const KINDS: { [kind: string]: string } = { memory: "meaning", "not remembered yet": "dates" };
const colour = (kind: string) => KINDS[kind] ?? "words";

/** What a reply was shown, as a bar of its whole prompt and text by text. */
function Texts({ shown, whole }: { shown: Schemas["ShownText"][]; whole: number }) {
  if (shown.length === 0) return null;
  return (
    <>
      <span className="bar long" aria-hidden>
        {shown.map(({ kind, tokens }, at) => (
          <span key={at} className={`of-${colour(kind)}`} style={{ width: `${(100 * tokens) / whole}%` }} />
        ))}
      </span>
      <ol className="texts" aria-label="What the reply was shown">
        {shown.map(({ kind, text, key, tokens }, at) => (
          <li key={at}>
            <i className={`of-${colour(kind)}`} aria-hidden />
            {key ? <a href={`#/${kind === "memory" ? "memories" : "recall"}/${part(key)}`}>{text}</a> : text}{" "}
            <span className="quiet">
              {kind}, {plural(tokens, "token")}
            </span>
          </li>
        ))}
      </ol>
    </>
  );
}

function Context({ turn: { shown, asked } }: { turn: Turn }) {
  if (!shown) return null;
  const remembered = sum(shown.map(({ tokens }) => tokens));
  const whole = Math.max(1, remembered, asked?.prompt_tokens ?? 0);
  return (
    <details className="shown">
      <summary>
        The reply was shown {shown.length ? `${plural(shown.length, "text")} of memory` : "nothing of memory"}
        {asked ? `: ${remembered} of ${asked.prompt_tokens} tokens` : `: ${plural(remembered, "token")}`}
      </summary>
      <Texts shown={shown} whole={whole} />
      {asked && (
        <p className="quiet">
          The other {(whole - remembered).toLocaleString()} tokens are the instructions and the conversation; the reply
          took {asked.reply_tokens.toLocaleString()}.
        </p>
      )}
    </details>
  );
}

/** The latest memories by their keys, also those that are retired. */
export async function latestMemories(signal: AbortSignal): Promise<Known> {
  const query = { limit: KNOWN, include_retired: true, newest_first: true };
  const records = await read<Record[]>("memories", query, signal);
  return new Map(records.map((each) => [each.key, each]));
}

/** The text of a memory, or its key where it is not among the latest. */
export const textOf = (key: string, known: Known) => known.get(key)?.memory.content ?? `memory ${key.slice(0, 8)}`;

/** What is said, with the memories that were made of it. */
async function talk(query: { thread: string; message_id: string; limit: number }, signal: AbortSignal) {
  const turns = read<Turn[]>("threads/conversation", query, signal);
  const [said, known] = await Promise.all([turns, latestMemories(signal)]);
  return { turns: said, known };
}

const madeOf = ({ outcome }: Turn) => [...new Set(outcome?.operations.map(({ key }) => key).filter(Boolean))];

function Became({ turn, known, but = "" }: { turn: Turn; known: Known; but?: string }) {
  const { outcome } = turn;
  if (turn.role !== "user" || !turn.message_id) return null;
  if (!outcome) return turn.at ? <p className="quiet">It waits to be remembered.</p> : null;
  const made = madeOf(turn);
  const others = made.filter((key) => key !== but);
  return (
    <div className="became quiet">
      {made.length === 0 && <span>Nothing was remembered. {outcome.rationale}</span>}
      {others.length > 0 && <span>{but ? "Also remembered:" : "Remembered:"}</span>}
      {others.map((key) => (
        <span key={key}>
          <a href={`#/memories/${part(key)}`}>{textOf(key, known)}</a>{" "}
          {known.get(key)?.live === false && <Mark>retired</Mark>}
        </span>
      ))}
    </div>
  );
}

interface InTalk {
  turns: Turn[];
  known: Known;
  here?: string;
  /** A memory that is shown beside it. */
  but?: string;
}

const WHO: { [role: string]: string } = { user: "The user", assistant: "The assistant" };

function Turns({ turns, known, here, but }: InTalk) {
  return (
    <ol className="turns" aria-label="What was said">
      {turns.map((turn, at) => (
        <li key={at} className={`turn ${turn.role} ${here && turn.message_id === here ? "here" : ""}`}>
          <article aria-label={`${WHO[turn.role] ?? turn.role}: ${turn.text.slice(0, 80)}`}>
            <p className="quiet">
              {WHO[turn.role] ?? turn.role} <Time at={turn.at} />
            </p>
            <p className="said" id={turn.message_id ? `t-${turn.message_id}` : undefined} tabIndex={-1}>
              {turn.text}
            </p>
            <Became turn={turn} known={known} but={but} />
            <Context turn={turn} />
          </article>
        </li>
      ))}
    </ol>
  );
}

/** The message in which a memory was told, with what was said around it, and the way to all of it. */
export function WhereSaid({ memory, thread, message }: { memory: string; thread: string; message: string }) {
  const asked = { thread, message_id: message, limit: AROUND };
  const load = (signal: AbortSignal) =>
    talk(asked, signal).catch((error) => {
      if (error.status === 404) return null;
      throw error;
    });
  const { value, error } = useLoaded(load, [thread, message]);
  if (error) return <Failure error={error} />;
  if (!value) return null;
  return (
    <Section title="Where it was said" id="said-in">
      <Turns {...value} here={message} but={memory} />
      <p>
        <a href={saidAt(thread, message)}>The whole conversation</a>
      </p>
    </Section>
  );
}

function One({ turns, known, here, thread }: InTalk & { thread: string }) {
  useEffect(() => {
    const said = here && document.getElementById(`t-${here}`);
    if (said) requestAnimationFrame(() => said.scrollIntoView({ block: "center" }));
  }, [here, turns]);
  return (
    <>
      <Title>{turns.find(({ role }) => role === "user")?.text ?? "A conversation"}</Title>
      {thread && (
        <p className="quiet">
          {plural(turns.length, "turn")} of <Key of={thread} />
        </p>
      )}
      <Turns turns={turns} known={known} here={here} />
    </>
  );
}

export function ConversationPage({ id, query }: { id: string; query: URLSearchParams }) {
  const thread = id === NONE ? "" : id;
  const here = query.get("message") ?? "";
  const asked = { thread, message_id: here, limit: MOST };
  return (
    <Detail
      back="conversations"
      title="the conversations"
      id={`${id}?${here}`}
      load={(signal) => talk(asked, signal)}
    >
      {(found) => <One {...found} here={here} thread={thread} />}
    </Detail>
  );
}
