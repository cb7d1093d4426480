// Pools of shared pairs, and the versions of their retrievers.

import { type Schemas, change, part, read } from "../api";
import { type Action, useAction } from "../hooks";
import {
  Cells,
  Detail,
  Do,
  Empty,
  Entries,
  Entry,
  Facts,
  Failure,
  Key,
  ListPage,
  Row,
  Section,
  Title,
  percent,
  plural,
} from "../parts";

type State = Schemas["RetrieverState"];
type Pooled = Schemas["Pooled"];
const named = (number: number) => (number === 0 ? "the untrained embedder" : `version ${number}`);

export const PoolsPage = () => (
  <ListPage
    label="Pools"
    load={(signal) => read<State[]>("pools", {}, signal)}
    empty={<Empty command="mneme share pool import --shipped">There is no pool yet. A pool has questions with good answers, which agents are shown as examples. To import those that come with Mneme:</Empty>}
  >
    {(each) => (
      <Row key={each.pool} href={`#/pools/${part(each.pool)}`} title={each.pool}>
        <span>{plural(each.memories, "pair")}</span> <span>retriever: {named(each.serving)}</span>{" "}
        <span>{each.waiting.toLocaleString()} not learned yet</span>
      </Row>
    )}
  </ListPage>
);

function Retriever({ state, action }: { state: State; action: Action }) {
  const use = (number: number) => (
    <Do
      action={action}
      size="compact-sm"
      work={() => change<State>(`pools/${part(state.pool)}/retriever/rollback`, { to_version: number })}
      said={(now) => `In use: ${named(now.serving)}.`}
    >
      Use {named(number)}
    </Do>
  );
  return (
    <Section title="Retriever" id="retriever">
      <p>
        In use: {named(state.serving)}. {plural(state.waiting, "pair")} not learned yet.
      </p>
      {state.versions.length > 0 && (
        <Cells head={["Version", "Kept", "Recall before, after", "Why", "Use"]} caption="The retriever's versions">
          {[...state.versions].reverse().map((each) => (
            <tr key={each.number}>
              <td>{each.number}</td>
              <td>{each.kept ? "yes" : "no"}</td>
              <td>
                {percent(each.before.recall)}, {percent(each.after.recall)}
              </td>
              <td>{each.reason}</td>
              <td>{each.number === state.serving ? "in use" : each.kept ? use(each.number) : "–"}</td>
            </tr>
          ))}
        </Cells>
      )}
      {state.serving > 0 && use(0)}
    </Section>
  );
}

function One({ state, pairs, again }: { state: State; pairs: Pooled[]; again: () => void }) {
  const action = useAction(again);
  return (
    <>
      <Title>{state.pool}</Title>
      <Failure error={action.error} />
      <Retriever state={state} action={action} />
      <Section title="Pairs" id="pairs">
        <p className="quiet">
          The first {pairs.length.toLocaleString()} of {state.memories.toLocaleString()}
        </p>
        <Entries>
          {pairs.map(({ key, pair }) => (
            <Entry
              key={key}
              label={`Pair ${key.slice(0, 8)}`}
              title={pair.prompt || "(no question)"}
              by={
                <>
                  {[pair.agent, pair.domain].filter(Boolean).join(", ")}, score {pair.score} <Key of={key} />
                </>
              }
            >
              <p className="diff">{pair.answer}</p>
              <Facts of={[["Led up to by", pair.leading.join("\n")]]} />
            </Entry>
          ))}
        </Entries>
      </Section>
    </>
  );
}

async function whole(id: string, signal: AbortSignal) {
  const path = `pools/${part(id)}`;
  const [state, pairs] = await Promise.all([
    read<State>(`${path}/retriever`, {}, signal),
    read<Pooled[]>(`${path}/pairs`, { limit: 100 }, signal),
  ]);
  return { state, pairs };
}

export function PoolPage({ id }: { id: string }) {
  return (
    <Detail back="pools" title="the pools" id={id} load={(signal) => whole(id, signal)}>
      {(both, again) => <One {...both} again={again} />}
    </Detail>
  );
}
