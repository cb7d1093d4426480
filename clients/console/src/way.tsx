// The way of a record: what it was made from, back to what somebody said, and what was made of it.

import { type Schemas, part } from "./api";
import { Entries, Entry, Key, Section, Stale, Time } from "./parts";

export type Link = Schemas["Step"];

const page = ({ kind, key }: Link) => (kind === "card" ? `cards/${part(key)}` : `recall/${part(key)}`);

export function Links({ title, id, links }: { title: string; id: string; links: Link[] }) {
  if (links.length === 0) return null;
  return (
    <Section title={title} id={id}>
      <Entries>
        {links.map((each, at) => (
            <Entry
              key={at}
              label={`${each.kind} ${each.key.slice(0, 8)}`}
              title={each.key ? <a href={`#/${page(each)}`}>{each.text || each.kind}</a> : each.text || each.kind}
              by={
                <>
                  <span>{each.kind}</span> {each.key && <Key of={each.key} />} <span>{each.owner}</span>{" "}
                  <Time at={each.at} /> <span>{each.made}</span>
                  {each.said && <q>{each.said}</q>} {each.said_in.length > 0 && <span>in {each.said_in.join(", ")}</span>}
                  <Stale why={each.stale} />
                </>
              }
            />
        ))}
      </Entries>
    </Section>
  );
}

export function Way({ back, forward }: { back: Link[]; forward: Link[] }) {
  return (
    <>
      <Links title="What it was made from" id="made-from" links={back} />
      <Links title="What was made of it" id="made-of-it" links={forward} />
    </>
  );
}
