// Discussions: their turns, and what each agent kept in its memory after each.

import { useState } from "react";
import { type Schemas, change, part, read, team } from "../api";
import { useAction, useLoaded } from "../hooks";
import {
  Choice,
  Choices,
  Detail,
  Diff,
  Do,
  Empty,
  Entries,
  Entry,
  Facts,
  Failure,
  Field,
  ListPage,
  Loaded,
  Mark,
  Row,
  Section,
  Stale,
  Time,
  Title,
  plural,
} from "../parts";
import { type Link, Links } from "../way";

type Discussion = Schemas["Discussion"];
type Turn = Schemas["Turn"];
type Withdrawal = Schemas["AgreementChange"];
interface Whole {
  discussion: Discussion;
  turns: Turn[];
  withdrawn: Withdrawal[];
  shown: Link[];
}

const newestFirst = (signal: AbortSignal) =>
  read<Discussion[]>("discussions", { limit: 1000 }, signal).then((found) => found.toReversed());

export const DiscussionsPage = () => (
  <ListPage label="Discussions" load={newestFirst} empty={<Empty command="mneme discuss TASK.md --experts data_pipeline">Nothing has been discussed yet. Here are a team’s discussions, with each turn and what each agent kept in its memory after it. To begin one:</Empty>}>
    {(each) => (
      <Row key={each.id} href={`#/discussions/${part(each.id)}`} title={each.task}>
        <Mark>{each.ended || "not ended"}</Mark> <code>{each.id}</code> <span>{plural(each.turns, "turn")}</span>{" "}
        <Time at={each.at} /> <Stale why={each.stale} />
      </Row>
    )}
  </ListPage>
);

const lines = (memory: unknown) =>
  JSON.stringify(memory, null, 2)
    .replace(/[{}[\]",]/g, "")
    .replace(/^\s*\n/gm, "");

function Memory({ discussion, agent }: { discussion: string; agent: string }) {
  const path = `discussions/${part(discussion)}/memories/${part(agent)}/history`;
  const loaded = useLoaded((signal) => read<Schemas["MemoryVersion"][]>(path, {}, signal), [path]);
  const [chosen, choose] = useState<number | null>(null);
  return (
    <Loaded of={loaded}>
      {(versions) => {
        const at = chosen === null ? versions.length - 1 : versions.findIndex(({ version }) => version === chosen);
        const now = versions[at];
        if (!now) return <p>Nothing was remembered.</p>;
        return (
          <>
            <Choice
              label="After turn"
              value={String(now.version)}
              set={(version) => choose(Number(version))}
              data={versions.map((each) => ({ value: String(each.version), label: String(each.turn) }))}
            />
            <p className="quiet">
              <Time at={now.at} /> <span>{now.reason}</span>
            </p>
            <Diff older={lines((versions[at - 1] ?? now).memory)} newer={lines(now.memory)} />
          </>
        );
      }}
    </Loaded>
  );
}

function Agents({ discussion, speakers }: { discussion: string; speakers: string[] }) {
  const [agent, choose] = useState(speakers[0] ?? "");
  if (!agent) return null;
  return (
    <Section title="Memories by turn" id="memories">
      <Choices>
        <Choice label="Agent" value={agent} set={choose} data={speakers} />
        <Memory key={agent} discussion={discussion} agent={agent} />
      </Choices>
    </Section>
  );
}

/** How much of its context a turn filled, with how many earlier turns in it. */
function Filled({ turn, most }: { turn: Turn; most: number }) {
  const { context_tokens: context, turns_shown: earlier, tokens } = turn;
  if (turn.person || !context) return null;
  return (
    <p className="quiet">
      {most > 0 && (
        <span className="bar" aria-hidden>
          <span className="of-meaning" style={{ width: `${Math.min(100, (100 * context) / most)}%` }} />
        </span>
      )}{" "}
      shown {context.toLocaleString()} {most > 0 && `of ${most.toLocaleString()} `}tokens: its task, its memory and{" "}
      {plural(earlier, "earlier turn")}
      {tokens > 0 && `; ${tokens.toLocaleString()} tokens in all with the reply`}
    </p>
  );
}

/** The agreements that were taken back, each with what lets it hold again. */
function Withdrawn({ discussion, of, again }: { discussion: string; of: Withdrawal[]; again: () => void }) {
  const [reason, set] = useState("");
  const action = useAction(again);
  const restore = (agreement: string) => () =>
    change<Withdrawal>(`agreements/${part(discussion)}/restore`, { agreement, reason, team: team() });
  if (of.length === 0) return null;
  return (
    <Section title="Taken back" id="withdrawn">
      <Field label="Why it holds all the same" value={reason} set={set} />
      <Failure error={action.error} />
      <Entries>
        {of.map(({ agreement, version, actor, at, reason: why }) => (
          <Entry
            key={agreement}
            label={agreement}
            title={agreement}
            by={
              <>
                <Time at={at} /> by {actor}, version {version}: {why}
              </>
            }
          >
            <Do
              action={action}
              work={restore(agreement)}
              said={(now) => `It holds again, since version ${now.version}.`}
            >
              Bring it back
            </Do>
          </Entry>
        ))}
      </Entries>
    </Section>
  );
}

function One({ discussion, turns, withdrawn, shown, again }: Whole & { again: () => void }) {
  const speakers = [...new Set(turns.filter((each) => !each.person).map((each) => each.speaker))];
  const { stale } = discussion;
  return (
    <>
      <Title>{discussion.task}</Title>
      {stale && (
        <p>
          <Stale why={stale} /> <a href={`#/recall/${part(discussion.id)}`}>Look at its sources, and settle it</a>
        </p>
      )}
      <Facts
        of={[
          ["Id", <code>{discussion.id}</code>],
          ["Begun", <Time at={discussion.at} />],
          ["Ended", discussion.ended],
          ["Lacks", discussion.lacks],
          ["Memory", discussion.memory],
        ]}
      />
      <Withdrawn discussion={discussion.id} of={withdrawn} again={again} />
      <Links title="What its agents were shown of others" id="shown" links={shown} />
      <Agents discussion={discussion.id} speakers={speakers} />
      <Section title="Turns" id="turns">
        <Entries>
          {turns.map((each) => (
            <Entry
              key={each.number}
              label={`Turn ${each.number}`}
              title={[
                `${each.number}. ${each.title}`,
                each.person && " (a person)",
                each.accept && " – accepts",
                each.finalize && " – finalizes",
              ]}
            >
              <p className="diff">{each.message}</p>
              <Filled turn={each} most={discussion.context_tokens} />
            </Entry>
          ))}
        </Entries>
      </Section>
    </>
  );
}

async function whole(id: string, signal: AbortSignal): Promise<Whole> {
  const path = `discussions/${part(id)}`;
  const [discussion, turns, withdrawn, [, ...from]] = await Promise.all([
    read<Discussion>(path, {}, signal),
    read<Turn[]>(`${path}/turns`, {}, signal),
    read<Withdrawal[]>(`${path}/withdrawn`, {}, signal),
    read<Link[]>(`trace/${part(id)}`, { team: team() }, signal),
  ]);
  return { discussion, turns, withdrawn, shown: from.filter(({ distance }) => distance === 1) };
}

export const DiscussionPage = ({ id }: { id: string }) => (
  <Detail back="discussions" title="the discussions" id={id} load={(signal) => whole(id, signal)}>
    {(found, again) => <One {...found} again={again} />}
  </Detail>
);
