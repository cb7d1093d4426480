// Calls of the server's operations, and whose data they are about.

const ROOT = "../mneme/v1/";
const OF_A_USER = new Set(["me", "users", "memories", "inbox", "threads", "household", "recall", "trace", "stale"]);
const KEPT = ["key", "user", "team"];

// The key stays in this tab: sessionStorage ends with it.
export const session = Object.fromEntries(KEPT.map((name) => [name, sessionStorage.getItem(name) ?? ""]));

export function keep(changed) {
  Object.assign(session, changed);
  for (const name of KEPT) sessionStorage.setItem(name, session[name]);
}

// An error as the server tells it: what happened, and what to do.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.status = status;
    this.hint = body.hint || "";
  }
}

const UNREACHABLE = { detail: "The server does not answer.", hint: "See whether it still runs, then try again." };

async function ask(method, path, query, body, signal) {
  const owner = OF_A_USER.has(path.split("/")[0]) ? "user" : "team";
  const given = Object.entries({ ...query, [owner]: session[owner] || "local" });
  const asked = new URLSearchParams(given.filter(([, value]) => value !== undefined && value !== ""));
  return sent(method, `${ROOT}${path}?${asked}`, body, signal);
}

async function sent(method, address, body, signal) {
  const headers = { "x-mneme-caller": "console", ...(session.key && { "x-api-key": session.key }) };
  if (body) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(address, { method, headers, body: body && JSON.stringify(body), signal });
  } catch (error) {
    throw error.name === "AbortError" ? error : new Problem(0, UNREACHABLE);
  }
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Problem(answer.status, told);
  return told;
}

export const read = (path, query = {}, signal = undefined) => ask("GET", path, query, null, signal);
export const change = (path, body = {}) => ask("POST", path, {}, body);

// The server's own routes of threads and runs; they know the caller by the key alone.
export const runs = (method, path, body = null, signal = undefined) => sent(method, `../${path}`, body, signal);

// A part of a path.
export const part = encodeURIComponent;
