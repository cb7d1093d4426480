// The memories of a user: the list, filters, search while typing, and what is done with several at once.

import { Button, Group, Paper, Text, Textarea } from "@mantine/core";
import { useEffect, useState } from "react";
import { type Schemas, change, part, read } from "../api";
import { note, say, useAction, useCalm, useLoaded } from "../hooks";
import {
  Choice,
  Choices,
  Confirm,
  Do,
  Failure,
  Field,
  Form,
  Key,
  Loaded,
  Mark,
  Pages,
  Row,
  Rows,
  Search,
  Tick,
  Time,
  Title,
  plural,
  useFound,
} from "../parts";
import { useRemembering } from "../remembering";
import { written } from "./memory";
import { Welcome } from "./welcome";

type Record = Schemas["MemoryRecord"];
interface Then {
  at?: string;
  as_of?: string;
}
const SIZE = 50;
const FOUND = 20;
const MOST = 1000; // memories that are filtered, or of another time, all at once
const FILTERS = {
  kind: { any: "", semantic: "a fact", episodic: "an event" },
  since: { any: "", 1: "the last day", 7: "the last week", 30: "the last month", 365: "the last year" },
  source: { any: "", rules: "read by rules", model: "read by a model", hand: "written by hand" },
  standing: { any: "", contradicts: "may contradict another", flagged: "to be looked at", ended: "holds no longer" },
} as const;
const LABELS = { kind: "Kind", since: "Changed in", source: "Source", standing: "Standing" };
type Filter = keyof typeof FILTERS;
type Filters = { [name in Filter]: string };
const NONE: Filters = { kind: "any", since: "any", source: "any", standing: "any" };

// Where a reader was, to come back to it.
const last = { opened: "", query: "", offset: 0, retired: false, then: {} as Then, filters: NONE };

const isFlagged = ({ memory }: Record) => Boolean(memory.flag || memory.unclear);
const today = () => new Date().toISOString().slice(0, 10);

function passes(record: Record, { kind, since, source, standing }: Filters): boolean {
  const { memory } = record;
  const age = (Date.now() - new Date(record.at).valueOf()) / 86_400_000;
  const from = memory.read_by === "" ? "hand" : memory.read_by === "rules" ? "rules" : "model";
  const standings: { [name: string]: boolean } = {
    any: true,
    contradicts: memory.may_contradict.length > 0,
    flagged: isFlagged(record),
    ended: memory.until !== "" && memory.until < today(),
  };
  return (
    (kind === "any" || memory.kind === kind) &&
    (since === "any" || age <= Number(since)) &&
    (source === "any" || from === source) &&
    (standings[standing] ?? true)
  );
}

interface Picking {
  picked: Set<string>;
  pick: (keys: string[], is: boolean) => void;
}

function MemoryRow({ record, picking }: { record: Record; picking: Picking }) {
  const { key, live, at, memory, similarity, version } = record;
  return (
    <Row
      href={`#/memories/${part(key)}`}
      id={`m-${key}`}
      title={memory.content}
      onOpen={() => {
        last.opened = key;
      }}
      before={
        <Tick
          aria-label={`Select: ${memory.content}`}
          checked={picking.picked.has(key)}
          set={(is) => picking.pick([key], is)}
        />
      }
    >
      <Key of={key} /> <span>{memory.kind === "semantic" ? "fact" : "event"}</span>
      <span>
        {version > 1 ? "changed" : "remembered"} <Time at={at} />
      </span>
      {!live && <Mark>retired</Mark>}
      {memory.since && <span>from {memory.since}</span>}
      {memory.until && <span>until {memory.until}</span>}
      {isFlagged(record) && <Mark>look at it</Mark>}
      {memory.may_contradict.length > 0 && <Mark>may contradict another</Mark>}
      {memory.read_by === "rules" && <span>read by rules</span>}
      {similarity ? <span>similarity {similarity.toFixed(2)}</span> : null}
    </Row>
  );
}

function List({ records, label, picking }: { records: Record[]; label: string; picking: Picking }) {
  useEffect(() => {
    const row = document.getElementById(`m-${last.opened}`);
    last.opened = "";
    if (row) requestAnimationFrame(() => row.focus());
  }, [records]);
  const all = records.length > 1 && records.every(({ key }) => picking.picked.has(key));
  return (
    <>
      {records.length > 1 && (
        <Tick
          mt="xs"
          label="Select all that are listed"
          checked={all}
          set={(is) =>
            picking.pick(
              records.map(({ key }) => key),
              is,
            )
          }
        />
      )}
      <Rows label={label}>
        {records.map((each) => (
          <MemoryRow key={each.key} record={each} picking={picking} />
        ))}
      </Rows>
    </>
  );
}

async function page(offset: number, retired: boolean, filters: Filters, signal: AbortSignal) {
  const isFiltered = JSON.stringify(filters) !== JSON.stringify(NONE);
  const query = { include_retired: retired, newest_first: true };
  const paged = isFiltered ? { limit: MOST, offset: 0 } : { limit: SIZE, offset };
  const [count, records] = await Promise.all([
    read<number>("memories/count", { include_retired: retired }, signal),
    read<Record[]>("memories", { ...query, ...paged }, signal),
  ]);
  const passed = records.filter((each) => passes(each, filters));
  return { count, shown: isFiltered ? passed.slice(offset, offset + SIZE) : passed, passed: passed.length, isFiltered };
}

interface Listing extends Picking {
  turn: number;
}

function All(of: Listing & { offset: number; retired: boolean; filters: Filters; goTo: (offset: number) => void }) {
  const { offset, retired, filters, turn, goTo, ...picking } = of;
  const loaded = useLoaded((signal) => page(offset, retired, filters, signal), [offset, retired, filters, turn]);
  return (
    <Loaded of={loaded}>
      {({ count, shown, passed, isFiltered }) =>
        count === 0 ? (
          <Welcome />
        ) : (
          <>
            <Text c="dimmed" size="sm" mt="sm">
              {isFiltered
                ? `${plural(passed, "memory", "memories")} of the latest ${Math.min(count, MOST).toLocaleString()}`
                : `${plural(count, "memory", "memories")}, the last remembered first`}
            </Text>
            <List records={shown} label="Memories" picking={picking} />
            <Pages offset={offset} size={SIZE} count={isFiltered ? passed : count} go={goTo} />
          </>
        )
      }
    </Loaded>
  );
}

function OfThen({ then, turn, ...picking }: Listing & { then: Then }) {
  const loaded = useLoaded((signal) => read<Record[]>("memories", { limit: MOST, ...then }, signal), [then, turn]);
  return (
    <Loaded of={loaded}>
      {(records) => (
        <>
          <Text c="dimmed" size="sm">
            {plural(records.length, "memory", "memories")} at that time, the oldest first
          </Text>
          <List records={records} label="Memories" picking={picking} />
        </>
      )}
    </Loaded>
  );
}

function Results({ query, then, turn, ...picking }: Listing & { query: string; then: Then }) {
  const load = (signal: AbortSignal) => read<Record[]>("memories/search", { query, limit: FOUND, ...then }, signal);
  const loaded = useLoaded(load, [query, then, turn]);
  useFound(loaded, query);
  return (
    <div aria-busy={loaded.loading}>
      <Loaded of={loaded}>
        {(records) =>
          records.length === 0 ? <p>No memory fits.</p> : <List records={records} label="Results" picking={picking} />
        }
      </Loaded>
    </div>
  );
}

interface Choosing {
  filters: Filters;
  setFilters: (filters: Filters) => void;
  then: Then;
  setThen: (then: Then) => void;
  retired: boolean;
  setRetired: (is: boolean) => void;
}

function Filtering({ filters, setFilters, then, setThen, retired, setRetired }: Choosing) {
  const given = (name: keyof Then, value?: string) => {
    const found = Object.entries({ ...then, [name]: value }).filter(([, each]) => each);
    setThen(Object.fromEntries(found));
  };
  return (
    <details className="filters" open={filters !== NONE || Object.keys(then).length > 0}>
      <summary>Filter</summary>
      <Choices>
        {(Object.keys(FILTERS) as Filter[]).map((name) => (
          <Choice
            key={name}
            label={LABELS[name]}
            value={filters[name]}
            set={(value) => setFilters({ ...filters, [name]: value })}
            data={Object.entries(FILTERS[name]).map(([value, label]) => ({ value, label: label || "any" }))}
          />
        ))}
        <Field type="date" label="What holds on" value={then.at ?? ""} set={(day) => given("at", day)} />
        <Field
          type="date"
          label="What was known on"
          value={then.as_of?.slice(0, 10) ?? ""}
          set={(day) => given("as_of", day && `${day}T23:59:59`)}
        />
        <Tick label="Also list retired ones" checked={retired} set={setRetired} />
      </Choices>
    </details>
  );
}

function Add({ done, close }: { done: () => void; close: () => void }) {
  const [text, set] = useState("");
  const action = useAction(() => {
    set("");
    done();
  });
  const send = () => {
    action.run(
      () => change<Schemas["Written"]>("memories", { content: text }),
      (now) => written(now, now.is_new ? "Added." : "It was remembered already, word for word: nothing was written."),
    );
  };
  return (
    <Form
      label="Add a memory"
      submit="Add"
      busy={action.busy}
      error={action.error}
      onSend={send}
      cancel="Close"
      onCancel={close}
    >
      <Textarea
        label="What is to be remembered"
        autoFocus
        rows={3}
        required
        maxLength={8000}
        value={text}
        onChange={(event) => set(event.currentTarget.value)}
      />
    </Form>
  );
}

const undone = (record: Record | null) =>
  !record
    ? "There is no change to take back."
    : record.live
      ? `Taken back. It says again: ${record.memory.content}`
      : `Taken back, and retired: ${record.memory.content}`;

/** Do something to several memories, one after the other, so that a failure leaves the rest as it was. */
async function forEach(keys: string[], what: "retire" | "undo" | "forget") {
  for (const key of keys) await change(`memories/${part(key)}/${what}`);
  return keys.length;
}

function Several({ picked, pick, again }: Picking & { again: () => void }) {
  const [asking, ask] = useState(false);
  const keys = [...picked];
  const action = useAction(() => {
    ask(false);
    pick(keys, false);
    again();
  });
  const takeBack = async () => {
    await forEach(keys, "undo");
    say(`${plural(keys.length, "memory", "memories")} brought back.`);
    again();
  };
  if (keys.length === 0) return <Failure error={action.error} />;
  const forget = () =>
    action.run(
      () => forEach(keys, "forget"),
      (count) => `Forgotten: ${plural(count, "memory", "memories")}.`,
    );
  return (
    <Paper withBorder p="sm" my="sm" className="several" role="group" aria-label="What is done with the selected">
      <Group gap="sm">
        <strong>{keys.length} selected</strong>
        <Do
          action={action}
          work={() => forEach(keys, "retire")}
          said={(count) => `${plural(count, "memory", "memories")} retired.`}
          undo={takeBack}
        >
          Retire them
        </Do>
        <Button color="red" variant="outline" onClick={() => ask(true)}>
          Forget them…
        </Button>
        <Button variant="default" onClick={() => pick(keys, false)}>
          Select none
        </Button>
      </Group>
      <Failure error={action.error} />
      {asking && (
        <Confirm
          title={`Forget ${plural(keys.length, "memory", "memories")}?`}
          yes="Forget them"
          busy={action.busy}
          onYes={forget}
          onNo={() => ask(false)}
        >
          <p>
            <strong>It cannot be undone.</strong> Each is erased with all its versions and the turns of conversations
            that told it.
          </p>
        </Confirm>
      )}
    </Paper>
  );
}

export function Memories({ query: given }: { query: URLSearchParams }) {
  const [query, setQuery] = useState(given.get("q") ?? last.query);
  const [offset, setOffset] = useState(last.offset);
  const [retired, setRetired] = useState(last.retired);
  const [then, setThen] = useState(last.then);
  const [filters, setFilters] = useState(last.filters);
  const [picked, setPicked] = useState(new Set<string>());
  const [adding, add] = useState(false);
  const [turn, next] = useState(0);
  const again = () => next((before) => before + 1);
  const remembering = useRemembering(again);
  const action = useAction(again);
  const calm = useCalm(query.trim());
  Object.assign(last, { query, offset, retired, then, filters });
  useEffect(() => note(calm ? `memories?q=${part(calm)}` : "memories"), [calm]);
  const pick = (keys: string[], is: boolean) =>
    setPicked((before) =>
      is ? new Set([...before, ...keys]) : new Set([...before].filter((key) => !keys.includes(key))),
    );
  const listing = { picked, pick, turn };
  const first =
    <Value,>(set: (value: Value) => void) =>
    (value: Value) => {
      set(value);
      setOffset(0);
    };
  return (
    <>
      <Title
        actions={
          <>
            <Button onClick={() => add(!adding)}>Add a memory</Button>
            <Do action={action} work={() => change<Record | null>("memories/undo")} said={undone}>
              Undo the latest change
            </Do>
          </>
        }
      >
        Memories
      </Title>
      <Failure error={action.error} />
      {adding && <Add done={again} close={() => add(false)} />}
      {remembering}
      <Search label="Search memories" value={query} set={setQuery} />
      <Filtering
        filters={filters}
        setFilters={first(setFilters)}
        then={then}
        setThen={setThen}
        retired={retired}
        setRetired={first(setRetired)}
      />
      <Several picked={picked} pick={pick} again={again} />
      {calm ? (
        <Results query={calm} then={then} {...listing} />
      ) : Object.keys(then).length > 0 ? (
        <OfThen then={then} {...listing} />
      ) : (
        <All
          offset={offset}
          retired={retired}
          filters={filters}
          goTo={(where) => {
            setOffset(where);
            scrollTo(0, 0);
          }}
          {...listing}
        />
      )}
    </>
  );
}
