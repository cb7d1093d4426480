// The memories of a user: the list, filters, search while typing, and what is done with several at once.

import { ActionIcon, Button, Group, Menu, Paper, Text, Textarea } from "@mantine/core";
import { IconArchive, IconCheck, IconDots, IconPencil, IconTrash } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { type Schemas, change, part, read } from "../api";
import { note, say, useAction, useCalm, useLoaded } from "../hooks";
import {
  Choice,
  Choices,
  Confirm,
  Failure,
  Field,
  Form,
  Loaded,
  Mark,
  Marked,
  Pages,
  Row,
  Rows,
  Search,
  Tick,
  Time,
  Title,
  percent,
  plural,
  useFound,
} from "../parts";
import { useRemembering } from "../remembering";
import { Legend, Why } from "../why";
import { acceptLabel, held, isToLookAt, written } from "./memory";
import { Welcome } from "./welcome";

type Record = Schemas["MemoryRecord"];
interface Then {
  at?: string;
  as_of?: string;
}
const SIZE = 50;
const CHIPS = 4;
const FOUND = 20;
const MOST_FOUND = 100; // results that are filtered
const MOST = 1000; // memories that are filtered, or of another time, all at once
const FILTERS = {
  kind: { any: "", semantic: "a fact", episodic: "an event" },
  since: { any: "", 1: "the last day", 7: "the last week", 30: "the last month", 365: "the last year" },
  source: { any: "", rules: "read by rules", model: "read by a model", hand: "written by hand" },
  standing: {
    any: "",
    contradicts: "may contradict another",
    flagged: "in doubt",
    look: "to be looked at",
    changed: "said something else before",
    ended: "holds no longer",
  },
} as const;
const LABELS = { kind: "Kind", since: "Changed in", source: "Source", standing: "Standing" };
type Filter = keyof typeof FILTERS;
type Filters = { [name in Filter | "name"]: string };
const NONE: Filters = { kind: "any", since: "any", source: "any", standing: "any", name: "" };
const isAny = (filters: Filters) => JSON.stringify(filters) === JSON.stringify(NONE);

// Where a reader was, to come back to it.
const last = { opened: "", query: "", offset: 0, retired: false, then: {} as Then, filters: NONE };

const isFlagged = ({ memory }: Record) => Boolean(memory.flag || memory.unclear);
const today = () => new Date().toISOString().slice(0, 10);

function passes(record: Record, { kind, since, source, standing, name }: Filters): boolean {
  const { memory } = record;
  const age = (Date.now() - new Date(record.at).valueOf()) / 86_400_000;
  const from = memory.read_by === "" ? "hand" : memory.read_by === "rules" ? "rules" : "model";
  const standings: { [name: string]: boolean } = {
    any: true,
    contradicts: memory.may_contradict.length > 0,
    flagged: isFlagged(record),
    look: isToLookAt(memory),
    changed: memory.past.length > 0 || record.version > 1,
    ended: memory.until !== "" && memory.until < today(),
  };
  return (
    (kind === "any" || memory.kind === kind) &&
    (since === "any" || age <= Number(since)) &&
    (source === "any" || from === source) &&
    (standings[standing] ?? true) &&
    (!name || memory.entities.some((each) => each.toLowerCase() === name.trim().toLowerCase()))
  );
}

interface Picking {
  picked: Set<string>;
  pick: (keys: string[], is: boolean) => void;
  retire: (keys: string[]) => void;
  accept: (key: string) => void;
  forget: (keys: string[]) => void;
  byName: (name: string) => void;
}

function RowMenu({ record, picking }: { record: Record; picking: Picking }) {
  const { key, live, memory } = record;
  return (
    <Menu position="bottom-end" transitionProps={{ duration: 0 }}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Actions: ${memory.content}`}>
          <IconDots size={18} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {live && (
          <Menu.Item component="a" href={`#/memories/${part(key)}?edit`} leftSection={<IconPencil size={16} />}>
            Edit
          </Menu.Item>
        )}
        {isToLookAt(memory) && (
          <Menu.Item leftSection={<IconCheck size={16} />} onClick={() => picking.accept(key)}>
            {acceptLabel(memory)}
          </Menu.Item>
        )}
        {live && (
          <Menu.Item leftSection={<IconArchive size={16} />} onClick={() => picking.retire([key])}>
            Retire
          </Menu.Item>
        )}
        <Menu.Item className="danger" leftSection={<IconTrash size={16} />} onClick={() => picking.forget([key])}>
          Forget…
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

interface InList {
  record: Record;
  /** The one after it in the list. */
  next?: Record;
  picking: Picking;
  query?: string;
  most?: number;
}

function MemoryRow({ record, next, picking, query = "", most = 0 }: InList) {
  const { key, live, at, memory, similarity, scores = {}, version } = record;
  const isRaised = (next?.scores?.total ?? 0) > (scores.total ?? 0);
  return (
    <Row
      href={`#/memories/${part(key)}`}
      id={`m-${key}`}
      title={<Marked text={memory.content} query={query} />}
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
      after={<RowMenu record={record} picking={picking} />}
    >
      {memory.entities.length > 0 && (
        <span className="chips">
          {memory.entities.slice(0, CHIPS).map((name) => (
            <button
              key={name}
              type="button"
              className="chip"
              aria-label={`Only with ${name}`}
              onClick={() => picking.byName(name)}
            >
              {name}
            </button>
          ))}
        </span>
      )}
      {memory.kind === "episodic" && <span>event</span>}
      <span>
        {version > 1 ? "changed" : "remembered"} <Time at={at} />
      </span>
      {!live && <Mark>retired</Mark>}
      {memory.since && <span>from {memory.since}</span>}
      {memory.until && <span>until {memory.until}</span>}
      {isFlagged(record) && <Mark>in doubt</Mark>}
      {memory.may_contradict.length > 0 && <Mark>may contradict another</Mark>}
      {memory.asks.length > 0 && <Mark>may {memory.asks.join(", ")} know it?</Mark>}
      {memory.read_by === "rules" && <span>read by rules</span>}
      {memory.past[0] && <span>{held(memory.past[0])}</span>}
      {scores.total === undefined && similarity ? <span>{percent(similarity)} alike in meaning</span> : null}
      <Why
        scores={scores}
        most={most}
        before={isRaised ? "It stands before an older one of a higher score, which it may contradict." : undefined}
      />
    </Row>
  );
}

interface Listed {
  records: Record[];
  label: string;
  picking: Picking;
  query?: string;
}

function List({ records, label, picking, query }: Listed) {
  useEffect(() => {
    const row = document.getElementById(`m-${last.opened}`);
    last.opened = "";
    if (row) requestAnimationFrame(() => row.focus());
  }, [records]);
  const most = Math.max(...records.map(({ scores }) => scores?.total ?? 0));
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
        {records.map((each, at) => (
          <MemoryRow
            key={each.key}
            record={each}
            next={records[at + 1]}
            picking={picking}
            query={query}
            most={most}
          />
        ))}
      </Rows>
    </>
  );
}

async function page(offset: number, retired: boolean, filters: Filters, signal: AbortSignal) {
  const isFiltered = !isAny(filters);
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

interface OfAll extends Listing {
  offset: number;
  retired: boolean;
  filters: Filters;
  goTo: (offset: number) => void;
  write: () => void;
}

function All({ offset, retired, filters, turn, goTo, write, ...picking }: OfAll) {
  const loaded = useLoaded((signal) => page(offset, retired, filters, signal), [offset, retired, filters, turn]);
  return (
    <Loaded of={loaded}>
      {({ count, shown, passed, isFiltered }) =>
        count === 0 ? (
          <Welcome write={write} />
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

function OfThen({ then, filters, turn, ...picking }: Listing & { then: Then; filters: Filters }) {
  const load = (signal: AbortSignal) => read<Record[]>("memories", { limit: MOST, ...then }, signal);
  const passed = (signal: AbortSignal) => load(signal).then((all) => all.filter((each) => passes(each, filters)));
  const loaded = useLoaded(passed, [then, filters, turn]);
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

function Results({ query, then, filters, turn, ...picking }: Listing & { query: string; then: Then; filters: Filters }) {
  const asked = { query, limit: isAny(filters) ? FOUND : MOST_FOUND, ...then };
  const load = (signal: AbortSignal) =>
    read<Record[]>("memories/search", asked, signal).then((all) => all.filter((each) => passes(each, filters)));
  const loaded = useLoaded(load, [query, then, filters, turn]);
  useFound(loaded, query);
  return (
    <div aria-busy={loaded.loading}>
      <Loaded of={loaded}>
        {(records) =>
          records.length === 0 ? (
            <p>No memory fits.</p>
          ) : (
            <>
              {records[0]?.scores?.total === undefined ? (
                <Text c="dimmed" size="sm" mt="sm">
                  {plural(records.length, "memory", "memories")}, the best first
                </Text>
              ) : (
                <Legend />
              )}
              <List records={records} label="Results" picking={picking} query={query} />
            </>
          )
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
  const isChosen = !isAny(filters) || Object.keys(then).length > 0;
  const [isOpen, open] = useState(isChosen);
  useEffect(() => {
    if (isChosen) open(true);
  }, [isChosen]);
  return (
    <details className="filters" open={isOpen} onToggle={(event) => open(event.currentTarget.open)}>
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
        <Field label="Name in it" value={filters.name} set={(name) => setFilters({ ...filters, name })} />
        <Field type="date" label="What holds on" value={then.at ?? ""} set={(day) => given("at", day)} />
        <Field
          type="date"
          label="What was known on"
          value={then.as_of?.slice(0, 10) ?? ""}
          set={(day) => given("as_of", day && `${day}T23:59:59`)}
        />
        <Tick label="Also list retired ones" checked={retired} set={setRetired} />
        {!isAny(filters) && (
          <Button variant="default" onClick={() => setFilters(NONE)}>
            Show all again
          </Button>
        )}
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

/** How many memories a person should look at, with the way to them. */
function ToLookAt({ turn, show }: { turn: number; show: () => void }) {
  const { value = [] } = useLoaded((signal) => read<Record[]>("memories/flagged", {}, signal), [turn]);
  if (value.length === 0) return null;
  return (
    <p className="look">
      <span>
        {value.length === 1 ? "1 memory is" : `${value.length.toLocaleString()} memories are`} in doubt, may
        contradict another, or could be shared.
      </span>
      <Button variant="default" size="compact-sm" onClick={show}>
        Show them
      </Button>
    </p>
  );
}

function Several({ picked, pick, retire, forget }: Picking) {
  const keys = [...picked];
  if (keys.length === 0) return null;
  return (
    <Paper withBorder p="sm" my="sm" className="several" role="group" aria-label="What is done with the selected">
      <Group gap="sm">
        <strong>{keys.length} selected</strong>
        <Button variant="default" onClick={() => retire(keys)}>
          Retire them
        </Button>
        <Button color="red" variant="outline" onClick={() => forget(keys)}>
          Forget them…
        </Button>
        <Button variant="default" onClick={() => pick(keys, false)}>
          Select none
        </Button>
      </Group>
    </Paper>
  );
}

interface Forgetting {
  keys: string[];
  busy: boolean;
  yes: () => void;
  no: () => void;
}

function AskForget({ keys, busy, yes, no }: Forgetting) {
  const it = keys.length === 1 ? "it" : "them";
  return (
    <Confirm
      title={`Forget ${plural(keys.length, "memory", "memories")}?`}
      yes={`Forget ${it}`}
      busy={busy}
      onYes={yes}
      onNo={no}
    >
      <p>
        <strong>It cannot be undone.</strong> Each is erased with all its versions and the turns of conversations that
        told it.
      </p>
    </Confirm>
  );
}

export function Memories({ query: given }: { query: URLSearchParams }) {
  const [query, setQuery] = useState(given.get("q") ?? (given.has("name") ? "" : last.query));
  const [offset, setOffset] = useState(last.offset);
  const [retired, setRetired] = useState(last.retired);
  const [then, setThen] = useState(last.then);
  const name = given.get("name");
  const [filters, setFilters] = useState(name ? { ...NONE, name } : last.filters);
  const [asking, ask] = useState<string[]>([]);
  const [picked, setPicked] = useState(new Set<string>());
  const [adding, add] = useState(false);
  const [turn, next] = useState(0);
  const again = () => next((before) => before + 1);
  const remembering = useRemembering(again);
  const action = useAction(() => {
    ask([]);
    setPicked(new Set());
    again();
  });
  const calm = useCalm(query.trim());
  Object.assign(last, { query, offset, retired, then, filters });
  useEffect(() => note(calm ? `memories?q=${part(calm)}` : "memories"), [calm]);
  const pick = (keys: string[], is: boolean) =>
    setPicked((before) =>
      is ? new Set([...before, ...keys]) : new Set([...before].filter((key) => !keys.includes(key))),
    );
  const first =
    <Value,>(set: (value: Value) => void) =>
    (value: Value) => {
      set(value);
      setOffset(0);
    };
  const retire = (keys: string[]) =>
    action.run(
      () => forEach(keys, "retire"),
      (count) => `${plural(count, "memory", "memories")} retired.`,
      async () => {
        await forEach(keys, "undo");
        say(`${plural(keys.length, "memory", "memories")} brought back.`);
        again();
      },
    );
  const forget = () =>
    action.run(
      () => forEach(asking, "forget"),
      (count) => `Forgotten: ${plural(count, "memory", "memories")}.`,
    );
  const accept = (key: string) =>
    action.run(
      () => change(`memories/${part(key)}/accept`),
      () => "Accepted as it stands.",
    );
  const byName = (name: string) => first(setFilters)({ ...NONE, name });
  const picking = { picked, pick, retire, accept, forget: ask, byName };
  const listing = { ...picking, turn };
  return (
    <>
      <Title
        actions={
          <>
            <Button onClick={() => add(!adding)}>Add a memory</Button>
            <Button
              variant="default"
              disabled={action.busy}
              onClick={() => action.run(() => change<Record | null>("memories/undo"), undone)}
            >
              Undo the latest change
            </Button>
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
      {isAny(filters) && !calm && <ToLookAt turn={turn} show={() => setFilters({ ...NONE, standing: "look" })} />}
      <Several {...picking} />
      {asking.length > 0 && <AskForget keys={asking} busy={action.busy} yes={forget} no={() => ask([])} />}
      {calm ? (
        <Results query={calm} then={then} filters={filters} {...listing} />
      ) : Object.keys(then).length > 0 ? (
        <OfThen then={then} filters={filters} {...listing} />
      ) : (
        <All
          offset={offset}
          retired={retired}
          filters={filters}
          write={() => add(true)}
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
