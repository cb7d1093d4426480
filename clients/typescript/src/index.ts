/**
 * Client of a Mneme server (`mneme serve`, or `langgraph dev`).
 *
 * The methods are those that are called most; `api` has every route, typed by the server's own description.
 */
import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type { components, paths } from "./schema.js";
type Schemas = components["schemas"];
export type MemoryRecord = Schemas["MemoryRecord"];
export type Written = Schemas["Written"];
export type Remembered = Schemas["Remembered"];
export type Recalled = Schemas["Recalled"];
export type Erased = Schemas["Erased"];
export type Version = Schemas["Version"];
export type Said = string | { role: "user" | "assistant" | "system"; content: string; id?: string; time?: string };

export interface Options {
  /** The server's address; by default that of `mneme serve` on this machine. */
  baseUrl?: string;
  /** The user's key, where the server has users. */
  key?: string;
  /** Whose memories, where it has none. */
  user?: string;
  /** Who changes something, for the history. */
  caller?: string;
  fetch?: (request: Request) => Promise<Response>;
}

/** What went wrong, and what to do: `kind` is the name of the error, such as `NotFound`. */
export class MnemeError extends Error {
  constructor(readonly kind: string, message: string, readonly hint: string, readonly status: number) {
    super(hint ? `${message} ${hint}` : message);
    this.name = "MnemeError";
  }
}

interface Answer<Data> {
  data?: Data;
  error?: unknown;
  response: Response;
}

export class Mneme {
  readonly api: Client<paths>;
  private readonly user: string;

  constructor(options: Options = {}) {
    this.user = options.user ?? "local";
    const headers: Record<string, string> = { "x-mneme-caller": options.caller ?? "typescript" };
    if (options.key) headers["x-api-key"] = options.key;
    const baseUrl = options.baseUrl ?? "http://127.0.0.1:2025";
    this.api = createClient<paths>({ baseUrl, headers, fetch: options.fetch });
  }

  /** Let the memory agent read what was said; returns what it did with each of the user's messages. */
  async remember(messages: Said | Said[], options: { thread?: string; seconds?: number } = {}): Promise<Remembered[]> {
    const body = { ...options, messages };
    return told(await this.api.POST("/mneme/v1/memories/remember", { params: this.once(), body }));
  }

  /** Return the user's memories that fit a question best. */
  async search(query: string, options: { limit?: number; at?: string; as_of?: string } = {}): Promise<MemoryRecord[]> {
    const asked = { query, limit: 5, ...options, user: this.user };
    return told(await this.api.GET("/mneme/v1/memories/search", { params: { query: asked } }));
  }

  /** Return what the user and teams know, of every kind, each with its origin, within a budget of tokens. */
  async recall(query: string, options: { teams?: string[]; tokens?: number } = {}): Promise<Recalled[]> {
    const asked = { query, ...options, user: this.user };
    return told(await this.api.GET("/mneme/v1/recall", { params: { query: asked } }));
  }

  /** Write a memory word for word; `beside` of it names what it may contradict. */
  async add(content: string, options: { since?: string; until?: string; reason?: string } = {}): Promise<Written> {
    const body = { ...options, content };
    return told(await this.api.POST("/mneme/v1/memories", { params: this.once(), body }));
  }

  /** Replace the text of a memory; its history stays. */
  async update(key: string, content: string, reason = ""): Promise<Written> {
    const params = { ...this.once(), path: { key } };
    return told(await this.api.POST("/mneme/v1/memories/{key}/update", { params, body: { content, reason } }));
  }

  /** Erase a memory for good, also in conversations. */
  async forget(key: string, reason = ""): Promise<Erased> {
    const params = { ...this.once(), path: { key }, query: { reason, user: this.user } };
    return told(await this.api.DELETE("/mneme/v1/memories/{key}", { params }));
  }

  /** Take back the latest change; null where there is none. */
  async undo(): Promise<MemoryRecord | null> {
    return told(await this.api.POST("/mneme/v1/memories/undo", { params: this.once() }));
  }

  /** Return every version of a memory, with who changed it and why. */
  async history(key: string): Promise<Version[]> {
    const params = { path: { key }, query: { user: this.user } };
    return told(await this.api.GET("/mneme/v1/memories/{key}/history", { params }));
  }

  /** Yield all memories, page by page. */
  async *list(page = 100): AsyncGenerator<MemoryRecord> {
    for (let offset = 0; ; offset += page) {
      const query = { limit: page, offset, user: this.user };
      const found = told(await this.api.GET("/mneme/v1/memories", { params: { query } }));
      yield* found;
      if (found.length < page) return;
    }
  }

  /** A key of its own for a request that changes something: sent again with it, it is done once. */
  private once() {
    return { query: { user: this.user }, header: { "Idempotency-Key": crypto.randomUUID() } };
  }
}

/** Return an answer's data. Throws MnemeError. */
function told<Data>(answer: Answer<Data>): Data {
  if (answer.response.ok) return answer.data as Data;
  const problem = (answer.error ?? {}) as { type?: string; detail?: string; hint?: string };
  const kind = problem.type?.replace("urn:mneme:", "") ?? "MnemeError";
  const said = problem.detail ?? `The server answered ${answer.response.status}.`;
  throw new MnemeError(kind, said, problem.hint ?? "", answer.response.status);
}
