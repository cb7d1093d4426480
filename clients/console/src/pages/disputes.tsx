// Disputes against cards: both approaches, how they were tested, and a person's decision.

import { Radio } from "@mantine/core";
import { useState } from "react";
import { type Schemas, change, part, read } from "../api";
import { focusHeading, useAction } from "../hooks";
import { Cells, Detail, Empty, Facts, Field, Form, Key, ListPage, Mark, Row, Section, Time, Title } from "../parts";

type Dispute = Schemas["Dispute"];

const newestFirst = (signal: AbortSignal) =>
  read<Dispute[]>("disputes", {}, signal).then((found) => found.toReversed());

export const Disputes = () => (
  <ListPage label="Disputes" load={newestFirst} empty={<Empty>Nothing is disputed. A finding that contradicts a verified card is tested here, and a person decides where the tests do not.</Empty>}>
    {(each) => (
      <Row key={each.id} href={`#/disputes/${part(each.id)}`} title={`${each.old.claim} ↔ ${each.new.claim}`}>
        <Mark>{each.status}</Mark> <Time at={each.opened_at} /> <span>by {each.opened_by}</span>
      </Row>
    )}
  </ListPage>
);

function Side({ title, of, id }: { title: string; of: Schemas["Approach"]; id: string }) {
  return (
    <Section title={title} id={id}>
      <p>{of.claim}</p>
      {of.solution && <pre>{of.solution}</pre>}
      {of.task && <p className="quiet">from {of.task}</p>}
    </Section>
  );
}

const yes = (is: boolean) => (is ? "yes" : "no");

function Round({ of, number }: { of: Schemas["Round"]; number: number }) {
  return (
    <Section title={`Round ${number}`} id={`round-${number}`}>
      <p>
        {of.recommendation}: {of.rationale}
      </p>
      <Cells head={["Task", "Card right", "Finding right", "Better"]} caption={`The trials of round ${number}`}>
        {of.trials.map((each) => (
          <tr key={each.task}>
            <td>{each.task}</td>
            <td>{yes(each.old_correct)}</td>
            <td>{yes(each.new_correct)}</td>
            <td>{each.winner}</td>
          </tr>
        ))}
      </Cells>
    </Section>
  );
}

const CHOICES = {
  keep_old: "Keep the card",
  deprecate_old: "The finding replaces the card",
  merge: "Both are right, each under its condition",
};
const FIELDS = { reason: "Why", by: "Who decides" };
const OF_A_MERGE = {
  claim: "What the card then claims",
  condition: "When the finding holds",
  pattern: "What to do then",
};

function Decide({ dispute, again }: { dispute: Dispute; again: () => void }) {
  const [decision, choose] = useState("keep_old");
  const [given, set] = useState<{ [name: string]: string }>({ reason: "", by: "", claim: "" });
  const action = useAction(again);
  const fields = { ...FIELDS, ...(decision === "merge" && OF_A_MERGE) };
  const send = () => {
    const { condition, pattern, ...plain } = given;
    const verdict = { decision, ...plain, rules: condition ? [{ condition, pattern }] : [] };
    const work = () => change(`disputes/${part(dispute.id)}/decide`, { verdict });
    action.run(work, () => "Decided.").then(focusHeading);
  };
  return (
    <Form label="Decide" submit="Decide" busy={action.busy} error={action.error} onSend={send}>
      <Radio.Group label="Your decision" value={decision} onChange={choose}>
        {Object.entries(CHOICES).map(([value, label]) => (
          <Radio key={value} my={4} value={value} label={label} />
        ))}
      </Radio.Group>
      {Object.entries(fields).map(([name, label]) => (
        <Field
          key={name}
          label={label}
          required
          value={given[name] ?? ""}
          set={(value) => set({ ...given, [name]: value })}
        />
      ))}
    </Form>
  );
}

function One({ dispute, again }: { dispute: Dispute; again: () => void }) {
  const { resolution } = dispute;
  return (
    <>
      <Title>Dispute: {dispute.status}</Title>
      <Facts
        of={[
          [
            "Card",
            <>
              <a href={`#/cards/${part(dispute.card_id)}`}>{dispute.old.claim}</a> <Key of={dispute.card_id} />
            </>,
          ],
          ["Opened", <Time at={dispute.opened_at} />],
          ["By", dispute.opened_by],
          ["Conflict", dispute.conflict_type],
          ["Decided", resolution && `${resolution.decision} by ${resolution.by}: ${resolution.reason}`],
        ]}
      />
      <div className="sides">
        <Side id="old" title="The card" of={dispute.old} />
        <Side id="new" title="The finding" of={dispute.new} />
      </div>
      {dispute.rounds.map((each, at) => (
        <Round key={at} of={each} number={at + 1} />
      ))}
      {dispute.status !== "resolved" && <Decide dispute={dispute} again={again} />}
    </>
  );
}

export function DisputePage({ id }: { id: string }) {
  return (
    <Detail
      back="disputes"
      title="the disputes"
      id={id}
      load={(signal) => read<Dispute>(`disputes/${part(id)}`, {}, signal)}
    >
      {(dispute, again) => <One dispute={dispute} again={again} />}
    </Detail>
  );
}
