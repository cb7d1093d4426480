// What all pages are made of.

import {
  ActionIcon,
  Alert,
  Badge,
  Button,
  type ButtonProps,
  Checkbox,
  type CheckboxProps,
  Code,
  CopyButton,
  Group,
  Modal,
  NativeSelect,
  type NativeSelectProps,
  Paper,
  Text,
  TextInput,
  type TextInputProps,
  Tooltip,
} from "@mantine/core";
import { IconCheck, IconCopy, IconSearch } from "@tabler/icons-react";
import { diffWords } from "diff";
import { type FormEvent, Fragment, type KeyboardEvent, type ReactNode, useEffect } from "react";
import type { Problem } from "./api";
import { type Action, type Loading, focusHeading, say, useLoaded } from "./hooks";

export const plural = (count: number, one: string, many = `${one}s`) =>
  `${count.toLocaleString()} ${count === 1 ? one : many}`;
export const percent = (share: number) => `${Math.round(100 * share)} %`;
export const spaced = (name: string) => name.replaceAll("_", " ");
export const words = (name: string) => spaced(name).replace(/^./, (letter) => letter.toUpperCase());

export const EVENTS = { insert: "remembered", update: "changed", retire: "retired", restore: "brought back" };

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

/** How long ago it was; the exact time is shown on hover. */
export function Time({ at }: { at?: string | null }) {
  if (!at) return null;
  const moment = new Date(at);
  if (Number.isNaN(moment.valueOf())) return <time>{at}</time>;
  const seconds = (moment.valueOf() - Date.now()) / 1000;
  const [unit, size] = UNITS.find(([, each]) => Math.abs(seconds) >= each) ?? ["second", 1];
  const shown = unit === "second" ? "just now" : RELATIVE.format(Math.round(seconds / size), unit);
  return (
    <time dateTime={at} title={moment.toLocaleString(undefined, { dateStyle: "full", timeStyle: "medium" })}>
      {shown}
    </time>
  );
}

/** The beginning of a key, with a button that copies the whole. */
export function Key({ of }: { of: string }) {
  const short = of.replace(/^(card_\w{8}).*$/, "$1").slice(0, of.startsWith("card_") ? 13 : 8);
  return (
    <CopyButton value={of}>
      {({ copied, copy }) => (
        <span className="key">
          <Code>{short}</Code>
          <Tooltip label={copied ? "Copied" : "Copy the whole key"}>
            <ActionIcon variant="transparent" size="sm" onClick={copy} aria-label={`Copy the key ${short}`}>
              {copied ? <IconCheck size={14} aria-hidden /> : <IconCopy size={14} aria-hidden />}
            </ActionIcon>
          </Tooltip>
        </span>
      )}
    </CopyButton>
  );
}

/** A command or an address, with a button that copies it. */
export function Copied({ of }: { of: string }) {
  return (
    <CopyButton value={of}>
      {({ copied, copy }) => (
        <span className="copied">
          <Code>{of}</Code>
          <Tooltip label={copied ? "Copied" : "Copy"}>
            <ActionIcon variant="subtle" onClick={copy} aria-label={`Copy ${of}`}>
              {copied ? <IconCheck size={16} aria-hidden /> : <IconCopy size={16} aria-hidden />}
            </ActionIcon>
          </Tooltip>
        </span>
      )}
    </CopyButton>
  );
}

/** What stands where nothing is yet: what would be here, and the command that makes it. */
export const Empty = ({ children, command }: { children: ReactNode; command?: string }) => (
  <div className="empty">
    <p>{children}</p>
    {command && <Copied of={command} />}
  </div>
);

/** A text in which the words of a query are marked. */
export function Marked({ text, query }: { text: string; query: string }) {
  const asked = new Set(query.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu));
  return text
    .split(/([\p{L}\p{N}]+)/u)
    .map((word, at) => (asked.has(word.toLowerCase()) ? <mark key={at}>{word}</mark> : <Fragment key={at}>{word}</Fragment>));
}

export const Mark = ({ children }: { children: ReactNode }) => (
  <Badge variant="outline" tt="none" radius="sm" className="mark">
    {children}
  </Badge>
);

/** Why a record no longer rests on what it was made from, where it does not. */
export const Stale = ({ why }: { why?: string }) =>
  why ? (
    <>
      <Mark>out of date</Mark> <span>{why}</span>
    </>
  ) : null;

interface Typed extends TextInputProps {
  value: string;
  set: (value: string) => void;
}

export const Field = ({ set, ...rest }: Typed) => (
  <TextInput maxLength={2000} {...rest} onChange={(event) => set(event.currentTarget.value)} />
);

interface Chosen extends NativeSelectProps {
  value: string;
  set: (value: string) => void;
}

export const Choice = ({ set, ...rest }: Chosen) => (
  <NativeSelect {...rest} onChange={(event) => set(event.currentTarget.value)} />
);

interface Ticked extends CheckboxProps {
  checked: boolean;
  set: (is: boolean) => void;
}

export const Tick = ({ set, ...rest }: Ticked) => (
  <Checkbox {...rest} onChange={(event) => set(event.currentTarget.checked)} />
);

export function Failure({ error }: { error?: Problem | null }) {
  if (!error) return null;
  return (
    <Alert className="failure" variant="outline" color="red" role="alert">
      <strong>{error.message}</strong> {error.hint ?? ""}
    </Alert>
  );
}

export function Loaded<T>({ of, children }: { of: Loading<T>; children: (value: T) => ReactNode }) {
  if (of.error) return <Failure error={of.error} />;
  if (of.value === undefined) return <Text c="dimmed">Loading…</Text>;
  return <>{children(of.value)}</>;
}

interface OneThing<T> {
  back: string;
  title: string;
  load: (signal: AbortSignal) => Promise<T>;
  id: string;
  children: (value: T, again: () => void) => ReactNode;
}

/** The page of one thing, with the way back to its list; its heading takes the focus once it is there. */
export function Detail<T>({ back, title, load, id, children }: OneThing<T>) {
  const loaded = useLoaded(load, [id]);
  const isThere = loaded.value !== undefined;
  useEffect(() => {
    if (isThere && !document.activeElement?.closest("main")) focusHeading();
  }, [isThere]);
  return (
    <>
      <p>
        <a href={`#/${back}`}>Back to {title}</a>
      </p>
      <Loaded of={loaded}>{(value) => children(value, loaded.again)}</Loaded>
    </>
  );
}

export function Title({ children, actions }: { children: ReactNode; actions?: ReactNode }) {
  return (
    <Group justify="space-between" align="flex-start" gap="sm" className="title">
      <h1 tabIndex={-1}>{children}</h1>
      {actions && <Group gap="xs">{actions}</Group>}
    </Group>
  );
}

interface Doing<T> extends ButtonProps {
  action: Action;
  work: () => Promise<T>;
  said: (result: T) => string;
  undo?: () => Promise<void>;
  children: ReactNode;
}

export function Do<T>({ action, work, said, undo, children, ...rest }: Doing<T>) {
  return (
    <Button variant="default" {...rest} disabled={action.busy} onClick={() => action.run(work, said, undo)}>
      {children}
    </Button>
  );
}

export function Diff({ older, newer }: { older: string; newer: string }) {
  return (
    <p className="diff">
      {diffWords(older, newer).map(({ added, removed, value }, at) => {
        if (!added && !removed) return value;
        const Kind = added ? "ins" : "del";
        return (
          <Kind key={at}>
            <span className="unseen">[{added ? "inserted" : "deleted"}: </span>
            {value}
            <span className="unseen">]</span>
          </Kind>
        );
      })}
    </p>
  );
}

interface Asking {
  title: string;
  yes: string;
  busy?: boolean;
  onYes: () => void;
  onNo: () => void;
  children: ReactNode;
}

/** A question before something that cannot be undone; Escape says no. */
export function Confirm({ title, yes, busy, onYes, onNo, children }: Asking) {
  const pressed = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    event.preventDefault(); // or the page behind it would be left, too
    onNo();
  };
  return (
    <Modal
      opened
      onClose={onNo}
      title={title}
      lockScroll={false}
      closeOnEscape={false}
      onKeyDown={pressed}
      closeButtonProps={{ "aria-label": "Close" }}
      transitionProps={{ duration: 0 }}
    >
      {children}
      <Group mt="md" justify="flex-end">
        <Button variant="default" onClick={onNo}>
          Cancel
        </Button>
        <Button color="red" disabled={busy} onClick={onYes}>
          {yes}
        </Button>
      </Group>
    </Modal>
  );
}

export function Facts({ of }: { of: [string, ReactNode][] }) {
  const shown = of.filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false);
  return (
    <dl className="facts">
      {shown.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface Paging {
  offset: number;
  size: number;
  count: number;
  go: (offset: number) => void;
}

export function Pages({ offset, size, count, go }: Paging) {
  if (count <= size) return null;
  const last = Math.min(count, offset + size);
  return (
    <nav aria-label="Pages">
      <Group gap="sm" my="md">
        <Button variant="default" disabled={offset === 0} onClick={() => go(Math.max(0, offset - size))}>
          Previous
        </Button>
        <span>
          {(offset + 1).toLocaleString()} to {last.toLocaleString()} of {count.toLocaleString()}
        </span>
        <Button variant="default" disabled={last >= count} onClick={() => go(offset + size)}>
          Next
        </Button>
      </Group>
    </nav>
  );
}

const firstRow = () => document.querySelector<HTMLElement>(".rows a");

export function Search({ label, value, set }: { label: string; value: string; set: (value: string) => void }) {
  const pressed = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      firstRow()?.focus();
    } else if (event.key === "Escape" && value) {
      event.stopPropagation();
      set("");
    } else if (event.key === "Enter") firstRow()?.click();
  };
  return (
    <div role="search">
      <Field
        id="search"
        type="search"
        label={label}
        autoComplete="off"
        leftSection={<IconSearch size={16} aria-hidden />}
        value={value}
        set={set}
        onKeyDown={pressed}
        description="Press / to come here, ↓ to go to the results, Enter to open the first."
        classNames={{ description: "keys" }}
      />
    </div>
  );
}

/** What is chosen among, in columns of one width; what follows from it stands below. */
export const Choices = ({ children }: { children: ReactNode }) => <div className="choices">{children}</div>;

/** Say how much was found, once it is there. */
export function useFound(of: Loading<unknown[]>, asked: string) {
  useEffect(() => {
    if (of.value && !of.loading) say(`${plural(of.value.length, "result")} for ${asked}`, undefined, true);
  }, [of.value, of.loading, asked]);
}

/** A list whose links the arrow keys go through. */
export function Rows({ label, children }: { label: string; children: ReactNode }) {
  const arrows = (event: KeyboardEvent<HTMLOListElement>) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const links = [...event.currentTarget.querySelectorAll<HTMLElement>(".what > a, article > p > a")];
    const next = links.indexOf(document.activeElement as HTMLElement) + step;
    event.preventDefault();
    (links[next] ?? (next < 0 ? document.getElementById("search") : null))?.focus();
  };
  return (
    <ol className="rows" aria-label={label} onKeyDown={arrows}>
      {children}
    </ol>
  );
}

interface Things<T> {
  of: T[];
  label: string;
  empty: ReactNode;
  children: (each: T) => ReactNode;
}

/** A list, or what is said where there is nothing. */
export const List = <T,>({ of, label, empty, children }: Things<T>) =>
  of.length === 0 ? <>{empty}</> : <Rows label={label}>{of.map(children)}</Rows>;

export function Listed<T>({ of, ...rest }: Omit<Things<T>, "of"> & { of: Loading<T[]> }) {
  return <Loaded of={of}>{(found) => <List of={found} {...rest} />}</Loaded>;
}

/** A page that is one list of what `load` returns. */
export function ListPage<T>({ label, load, ...rest }: Omit<Things<T>, "of"> & { load: OneThing<T[]>["load"] }) {
  return (
    <>
      <Title>{label}</Title>
      <Listed of={useLoaded(load, [])} label={label} {...rest} />
    </>
  );
}

interface Sending {
  label: string;
  submit: string;
  busy: boolean;
  disabled?: boolean;
  error?: Problem | null;
  cancel?: string;
  onCancel?: () => void;
  onSend: () => void;
  onKeyDown?: (event: KeyboardEvent) => void;
  children: ReactNode;
}

/** A form in a box, with what sends it, what leaves it, and what went wrong. */
export function Form({
  label,
  submit,
  busy,
  disabled,
  error,
  cancel = "Cancel",
  onCancel,
  onSend,
  onKeyDown,
  children,
}: Sending) {
  const send = (event: FormEvent) => {
    event.preventDefault();
    onSend();
  };
  return (
    <Paper component="form" withBorder p="md" mb="md" onSubmit={send} onKeyDown={onKeyDown} aria-label={label}>
      {children}
      <Group mt="sm">
        <Button type="submit" disabled={busy || disabled}>
          {submit}
        </Button>
        {onCancel && (
          <Button variant="default" onClick={onCancel}>
            {cancel}
          </Button>
        )}
      </Group>
      <Failure error={error} />
    </Paper>
  );
}

interface InRow {
  href: string;
  title: ReactNode;
  id?: string;
  onOpen?: () => void;
  before?: ReactNode;
  after?: ReactNode;
  children?: ReactNode;
}

export function Row({ href, title, id, onOpen, before, after, children }: InRow) {
  return (
    <li className="row">
      {before}
      <div className="what">
        <a href={href} id={id} onClick={onOpen}>
          {title}
        </a>
        <div className="quiet">{children}</div>
      </div>
      {after}
    </li>
  );
}

export function Cells({ head, children, caption }: { head: string[]; children: ReactNode; caption?: string }) {
  return (
    <div className="scrolls" tabIndex={0} role="group" aria-label={caption ?? "Table"}>
      <table>
        {caption && <caption className="unseen">{caption}</caption>}
        <thead>
          <tr>
            {head.map((each) => (
              <th scope="col" key={each}>
                {each}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function Section({ title, id, children }: { title: string; id: string; children: ReactNode }) {
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}

/** Articles one after the other: versions, turns, pairs, the steps of a way. */
export const Entries = ({ children, reversed }: { children: ReactNode; reversed?: boolean }) => (
  <ol className="versions" reversed={reversed}>
    {children}
  </ol>
);

interface OfEntry {
  label: string;
  title: ReactNode;
  by?: ReactNode;
  children?: ReactNode;
}

export const Entry = ({ label, title, by, children }: OfEntry) => (
  <li>
    <article aria-label={label}>
      <h3>{title}</h3>
      {by && <p className="quiet">{by}</p>}
      {children}
    </article>
  </li>
);

export interface Version {
  number: number;
  title?: string;
  at: string;
  actor: string;
  model?: string;
  text: string;
  facts: [string, ReactNode][];
}

interface History<T> {
  /** The oldest first. */
  of: Version[];
  action: Action;
  back: (number: number) => Promise<T>;
  said: (now: T, number: number) => string;
}

/** The versions of a record, the newest first: what changed in each, by whom and why, and the way back to it. */
export function Versions<T>({ of, action, back, said }: History<T>) {
  const newest = [...of].reverse();
  return (
    <Section title="Versions" id="versions">
      <Entries reversed>
        {newest.map(({ number, title, at, actor, model, text, facts }, place) => (
          <Entry
            key={number}
            label={`Version ${number}`}
            title={`Version ${number}${title ? `: ${title}` : ""}`}
            by={
              <>
                <Time at={at} /> by {spaced(actor)}
                {model && ` (${model})`}
              </>
            }
          >
            <Diff older={newest[place + 1]?.text ?? text} newer={text} />
            <Facts of={facts} />
            {place > 0 && (
              <Do action={action} work={() => back(number)} said={(now) => said(now, number)}>
                Roll back to version {number}
              </Do>
            )}
          </Entry>
        ))}
      </Entries>
    </Section>
  );
}
