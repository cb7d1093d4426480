// Messages that wait to be remembered, and those that were set aside.

import { Button, Group } from "@mantine/core";
import { useState } from "react";
import { type Schemas, change, part, read } from "../api";
import { type Action, useAction, useLoaded } from "../hooks";
import { Confirm, Do, Empty, Facts, Failure, Key, Loaded, Mark, Time, Title, plural } from "../parts";
import { useRemembering } from "../remembering";

type Letter = Schemas["Letter"];

function One({ letter, action, drop }: { letter: Letter; action: Action; drop: () => void }) {
  return (
    <li className="row">
      <article aria-label="Message">
        <p>{letter.message}</p>
        <p className="quiet">
          <Mark>{letter.status}</Mark> <Time at={letter.time} /> <Key of={letter.message_id} />
        </p>
        <Facts
          of={[
            ["Tried", letter.tries ? plural(letter.tries, "time") : ""],
            ["Went wrong", letter.error],
            ["The model's last reply", letter.reply && <pre>{letter.reply}</pre>],
          ]}
        />
        <Group gap="sm">
          {letter.tries > 0 && (
            <Do
              action={action}
              work={() => change(`inbox/${part(letter.message_id)}/retry`)}
              said={() => "It waits again."}
            >
              Retry
            </Do>
          )}
          <Button variant="outline" color="red" onClick={drop}>
            Drop…
          </Button>
        </Group>
      </article>
    </li>
  );
}

export function InboxPage() {
  const loaded = useLoaded((signal) => read<Letter[]>("inbox", {}, signal), []);
  const [dropped, drop] = useState<Letter | null>(null);
  const remembering = useRemembering(loaded.again);
  const action = useAction(() => {
    drop(null);
    loaded.again();
  });
  const yes = (letter: Letter) =>
    action.run(
      () => change(`inbox/${part(letter.message_id)}/drop`),
      () => "Dropped: it is not remembered.",
    );
  return (
    <>
      <Title>Inbox</Title>
      <p className="quiet">
        Messages that wait to be remembered. One that failed five times is set aside until you decide.
      </p>
      {remembering}
      <Failure error={action.error} />
      {dropped && (
        <Confirm title="Drop this message?" yes="Drop it" onYes={() => yes(dropped)} onNo={() => drop(null)}>
          <p>It will not be remembered: “{dropped.message}”</p>
        </Confirm>
      )}
      <Loaded of={loaded}>
        {(letters) =>
          letters.length === 0 ? (
            <Empty>Nothing waits: what was said to the chatbot or in your editor is remembered.</Empty>
          ) : (
            <ol className="rows" aria-label="Messages">
              {letters.map((each) => (
                <One key={each.message_id} letter={each} action={action} drop={() => drop(each)} />
              ))}
            </ol>
          )
        }
      </Loaded>
    </>
  );
}
