// Household runs, played again step by step: who is where, holds what, does what, and what was decided.

import { Button, Group, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { type Problem, type Schemas, part, read, session } from "../api";
import { FloorPlan } from "../floorplan";
import { useLoaded } from "../hooks";
import { Cells, Detail, Facts, Failure, ListPage, Loaded, Mark, Row, Title, plural } from "../parts";

type Replay = Schemas["Replay"];
const PACE = 700; // milliseconds that each step is shown

export const Runs = () => (
  <ListPage
    label="Household"
    load={(signal) => read<Schemas["Played"][]>("household/runs", {}, signal)}
    empty={
      <>
        <p>
          {session.key ? "You have played nothing yet" : "Nothing has been played yet"}. Play one on the server's
          machine: <code>mneme household run</code>
        </p>
        {session.key && (
          <p>
            Set <code>MNEME_KEY</code> to your key there, so that the run is yours. Runs that were played without a key
            are nobody's: <code>mneme household list</code> shows them on that machine.
          </p>
        )}
      </>
    }
  >
    {(each) => (
      <Row key={each.run} href={`#/household/${part(each.run)}`} title={each.task || each.run}>
        <Mark>{each.outcome}</Mark> <code>{each.run}</code> <span>{each.agents && plural(each.agents, "agent")}</span>{" "}
        <span>{each.steps !== undefined && each.steps !== null && plural(each.steps, "step")}</span>
      </Row>
    )}
  </ListPage>
);

function Members({ members, decision }: { members: Schemas["Member"][]; decision?: Schemas["Decision"] }) {
  return (
    <Cells head={["Who", "Is in", "Holds", "Does", "Proposed", "Is to do"]} caption="The team after this step">
      {members.map((each, at) => (
        <tr key={each.name}>
          <th scope="row">{each.name}</th>
          <td>{each.room}</td>
          <td>{each.holds.join(", ") || "nothing"}</td>
          <td>{each.does}</td>
          <td>{decision?.proposals[at]}</td>
          <td>{decision?.allocation[at] ?? decision?.proposals[at]}</td>
        </tr>
      ))}
    </Cells>
  );
}

/** What each member had before its eyes: asked of the server step by step, so that none waits for all. */
function Eyes({ run, step }: { run: string; step: number }) {
  const path = `household/runs/${part(run)}/sights/${step}`;
  const loaded = useLoaded((signal) => read<Schemas["Sight"][]>(path, {}, signal), [path]);
  return (
    <Loaded of={loaded}>
      {(sights) => (
        <div className="sights">
          {sights.map(({ name, picture }) => (
            <figure key={name}>
              <img src={picture} width="384" height="128" alt={`What ${name} sees: colours, depth and segments`} />
              <figcaption>{name} sees</figcaption>
            </figure>
          ))}
        </div>
      )}
    </Loaded>
  );
}

function Step({ replay, at }: { replay: Replay; at: number }) {
  const before = replay.decisions.filter((each) => each.at <= at);
  const decision = before.findLast((each) => each.proposals.length > 0);
  const synopsis = before.findLast((each) => each.synopsis)?.synopsis;
  const now = replay.steps[at];
  if (!now) return null;
  return (
    <>
      <FloorPlan plan={replay.plan} now={now} />
      <Members members={now.members} decision={decision} />
      <Facts
        of={[
          ...now.goals.map(({ what, done, count }): [string, string] => [what, `${done} of ${count}`]),
          ["Open", now.opened.join(", ")],
          ["The manager's reason", decision?.reason],
          ["The manager's synopsis", synopsis],
        ]}
      />
    </>
  );
}

function Player({ replay }: { replay: Replay }) {
  const last = replay.steps.length - 1;
  const [at, go] = useState(0);
  const [playing, play] = useState(false);
  useEffect(() => {
    if (!playing) return undefined;
    const timer = setTimeout(() => (at < last ? go(at + 1) : play(false)), PACE);
    return () => clearTimeout(timer);
  }, [playing, at, last]);
  const jump = (where: number) => {
    play(false);
    go(Math.max(0, Math.min(last, where)));
  };
  const begin = () => {
    if (at === last) go(0);
    play(!playing);
  };
  const number = (place: number) => replay.steps[place]?.step ?? 0;
  return (
    <section aria-label="Replay">
      <Group gap="sm" my="sm">
        <Button variant="default" disabled={at === 0} onClick={() => jump(at - 1)}>
          Previous step
        </Button>
        <Button disabled={last === 0} onClick={begin}>
          {playing ? "Pause" : "Play"}
        </Button>
        <Button variant="default" disabled={at === last} onClick={() => jump(at + 1)}>
          Next step
        </Button>
        <Text>
          {number(at)} of {number(last)}
        </Text>
      </Group>
      <input
        type="range"
        className="slider"
        aria-label="Step"
        aria-valuetext={`Step ${number(at)} of ${number(last)}`}
        min={0}
        max={last}
        value={at}
        onChange={(event) => jump(Number(event.currentTarget.value))}
      />
      {replay.has_eyes && <Eyes run={replay.played.run} step={number(at)} />}
      <Step replay={replay} at={at} />
    </section>
  );
}

function One({ replay }: { replay: Replay }) {
  const { task, outcome, at_least: least, answered_by: who, run } = replay.played;
  const lost = replay.missing.length;
  return (
    <>
      <Title>{task}</Title>
      <Facts
        of={[
          ["Run", run],
          ["Outcome", outcome],
          ["No team needs fewer steps than", least],
          ["Answered by", who],
        ]}
      />
      {lost > 0 && <Failure error={{ message: `${plural(lost, "step")} of this run are lost.` } as Problem} />}
      <Player replay={replay} />
    </>
  );
}

export function RunPage({ id }: { id: string }) {
  return (
    <Detail
      back="household"
      title="the runs"
      id={id}
      load={(signal) => read<Replay>(`household/runs/${part(id)}`, {}, signal)}
    >
      {(replay) => <One replay={replay} />}
    </Detail>
  );
}
