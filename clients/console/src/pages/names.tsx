// Whom and what memories name, and which are named together: a picture, and the same as a table.

import { Suspense, lazy, useMemo, useState } from "react";
import { type Schemas, part, read } from "../api";
import { useLoaded } from "../hooks";
import { Cells, Loaded, Row, Rows, Section, Title, plural } from "../parts";

const Graph = lazy(() => import("../graph"));
type Record = Schemas["MemoryRecord"];
const LATEST = 1000;
const SHOWN = 40;

export interface Names {
  nodes: { name: string; count: number }[];
  /** Two names by their places, and the memories that name both. */
  links: { one: number; other: number; memories: Record[] }[];
}

/** Return the names that stand in most memories, and which memories each two of them share. */
function namesIn(records: Record[]): Names {
  const counts = new Map<string, number>();
  const together = new Map<string, Record[]>();
  const named = records.map((record) => ({ record, names: [...new Set(record.memory.entities)] }));
  for (const each of named.flatMap(({ names }) => names)) counts.set(each, (counts.get(each) ?? 0) + 1);
  const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, SHOWN);
  const place = new Map(most.map(([name], at) => [name, at]));
  for (const { record, names } of named) {
    const here = names.flatMap((name) => place.get(name) ?? []).sort((a, b) => a - b);
    here.forEach((one, at) =>
      here.slice(at + 1).forEach((other) => {
        const pair = `${one} ${other}`;
        together.set(pair, [...(together.get(pair) ?? []), record]);
      }),
    );
  }
  const links = [...together].map(([pair, memories]) => {
    const [one = 0, other = 0] = pair.split(" ").map(Number);
    return { one, other, memories };
  });
  return { nodes: most.map(([name, count]) => ({ name, count })), links };
}

function Table({ names }: { names: Names }) {
  const beside = names.nodes.map(() => [] as [string, number][]);
  for (const { one, other, memories } of names.links) {
    beside[one]?.push([names.nodes[other]?.name ?? "", memories.length]);
    beside[other]?.push([names.nodes[one]?.name ?? "", memories.length]);
  }
  return (
    <Cells head={["Name", "Memories", "Named together with"]} caption="The names as a table">
      {names.nodes.map(({ name, count }, at) => (
        <tr key={name}>
          <th scope="row">
            <a href={`#/memories?name=${part(name)}`}>{name}</a>
          </th>
          <td>{count}</td>
          <td>
            {beside[at]
              ?.sort((a, b) => b[1] - a[1])
              .map(([each, weight]) => `${each} (${weight})`)
              .join(", ")}
          </td>
        </tr>
      ))}
    </Cells>
  );
}

function Chosen({ names, records }: { names: string[]; records: Record[] }) {
  const [only] = names;
  return (
    <Section title={names.join(" and ") || "Nothing is chosen"} id="chosen">
      {only === undefined && (
        <p className="quiet">Choose a name, or a line between two: its memories are listed here.</p>
      )}
      {only !== undefined && names.length === 1 && (
        <p className="quiet">
          <a href={`#/memories?name=${part(only)}`}>All of them, to be changed</a>
        </p>
      )}
      <Rows label="Memories of the chosen">
        {records.map((each) => (
          <Row key={each.key} href={`#/memories/${part(each.key)}`} title={each.memory.content} />
        ))}
      </Rows>
    </Section>
  );
}

function Shown({ records }: { records: Record[] }) {
  const names = useMemo(() => namesIn(records), [records]);
  const [chosen, setChosen] = useState<string[]>([]);
  const choose = (next: string[]) => setChosen((before) => (`${before}` === `${next}` ? before : next));
  if (names.nodes.length === 0)
    return (
      <p>
        No memory names anybody yet. The memory agent takes names from what you say: tell it of people, places and
        projects, in <code>mneme chat</code> or with <em>Add a memory</em>.
      </p>
    );
  const of = records.filter(({ memory }) => chosen.length > 0 && chosen.every((name) => memory.entities.includes(name)));
  return (
    <>
      <p className="quiet">
        Of the latest {plural(records.length, "memory", "memories")}, the {plural(names.nodes.length, "name")} that most
        of them have, and what links them. The table below says the same.
      </p>
      <div className="beside">
        <Suspense fallback={<p>Drawing…</p>}>
          <Graph names={names} chosen={chosen} choose={choose} />
        </Suspense>
        <Chosen names={chosen} records={of} />
      </div>
      <Table names={names} />
    </>
  );
}

export function NamesPage() {
  const load = (signal: AbortSignal) => read<Record[]>("memories", { limit: LATEST, newest_first: true }, signal);
  const loaded = useLoaded(load, []);
  return (
    <>
      <Title>Names</Title>
      <Loaded of={loaded}>{(records) => <Shown records={records} />}</Loaded>
    </>
  );
}
