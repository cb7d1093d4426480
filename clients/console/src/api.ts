// Calls of the server's operations, and whose data they are about.

import type { components } from "./schema";

export type Schemas = components["schemas"];

const ROOT = "../mneme/v1/";
const OF_A_USER = new Set([
  ...["me", "users", "memories", "inbox", "threads", "household"],
  ...["recall", "trace", "promote", "stale", "contradictions", "agreements"],
]);
const KEPT = ["key", "user", "team"] as const;
export type Owner = (typeof KEPT)[number];
type Query = Record<string, string | number | boolean | undefined>;

// The key stays in this tab: sessionStorage ends with it.
export const session = Object.fromEntries(KEPT.map((name) => [name, sessionStorage.getItem(name) ?? ""])) as Record<
  Owner,
  string
>;

export function keep(changed: Partial<Record<Owner, string>>) {
  Object.assign(session, changed);
  for (const name of KEPT) sessionStorage.setItem(name, session[name]);
  unanswered.clear();
}

export const team = () => session.team || "local";

/** An error as the server tells it: what happened, and what to do. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    body: { detail?: string; title?: string; hint?: string },
  ) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.hint = body.hint ?? "";
  }
  readonly hint: string;
}

const UNREACHABLE = { detail: "The server does not answer.", hint: "See whether it still runs, then try again." };

function addressOf(path: string, query: Query): string {
  const owner: Owner = OF_A_USER.has(path.split("/")[0] ?? "") ? "user" : "team";
  const given = Object.entries({ ...query, [owner]: session[owner] || "local" });
  const asked = new URLSearchParams(
    given.filter(([, value]) => value !== undefined && value !== "").map(([name, value]) => [name, String(value)]),
  );
  return `${ROOT}${path}?${asked}`;
}

async function sent<T>(method: string, address: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = { "x-mneme-caller": "console" };
  if (session.key) headers["x-api-key"] = session.key;
  if (body) headers["content-type"] = "application/json";
  let answer: Response;
  try {
    answer = await fetch(address, { method, headers, body: body ? JSON.stringify(body) : undefined, signal });
  } catch (error) {
    throw error instanceof DOMException && error.name === "AbortError" ? error : new Problem(0, UNREACHABLE);
  }
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Problem(answer.status, told);
  return told as T;
}

interface Asked {
  answer: Promise<unknown>;
  control: AbortController;
  askers: number;
}
const unanswered = new Map<string, Asked>();

/** Read from the server; parts of the page that ask the same before the answer is there share one request. */
export function read<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const address = addressOf(path, query);
  const asked = unanswered.get(address) ?? { ...begun(address), askers: 0 };
  unanswered.set(address, asked);
  asked.askers += 1;
  signal?.addEventListener("abort", () => {
    asked.askers -= 1;
    if (asked.askers > 0) return;
    asked.control.abort();
    if (unanswered.get(address) === asked) unanswered.delete(address);
  });
  return asked.answer as Promise<T>;
}

function begun(address: string): Pick<Asked, "answer" | "control"> {
  const control = new AbortController();
  const done = () => unanswered.get(address)?.control === control && unanswered.delete(address);
  return { answer: sent("GET", address, null, control.signal).finally(done), control };
}

/** Change something; what is read from now on is asked anew. */
export function change<T>(path: string, body: object = {}): Promise<T> {
  return sent<T>("POST", addressOf(path, {}), body).finally(() => unanswered.clear());
}

/** The server's own routes of threads and runs; they know the caller by the key alone. */
export const runs = <T>(method: string, path: string, body: object | null = null, signal?: AbortSignal) =>
  sent<T>(method, `../${path}`, body, signal);

/** A part of a path. */
export const part = encodeURIComponent;
