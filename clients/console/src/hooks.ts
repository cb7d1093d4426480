// Loading, acting, and the address: what every page uses.

import { useCallback, useEffect, useState } from "react";
import type { Problem } from "./api";

export interface Loading<T> {
  value?: T;
  error?: Problem;
  loading: boolean;
  again: () => void;
}

/** Load something again whenever one of the inputs is another; the older answer stays until the newer is there. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, inputs: unknown[]): Loading<T> {
  const [state, set] = useState<Omit<Loading<T>, "again">>({ loading: true });
  const [turn, next] = useState(0);
  useEffect(() => {
    const control = new AbortController();
    const done = (found: Omit<Loading<T>, "again">) => control.signal.aborted || set(found);
    set((before) => ({ ...before, loading: true }));
    load(control.signal).then(
      (value) => done({ value, loading: false }),
      (error: Problem) => done({ error, loading: false }),
    );
    return () => control.abort();
  }, [...inputs, turn]);
  return { ...state, again: useCallback(() => next((before) => before + 1), []) };
}

/** What was done, which a screen reader reads out; with what takes it back. */
export interface Notice {
  text: string;
  undo?: () => Promise<void>;
  /** Whether the page itself shows it. */
  isHeardAlone?: boolean;
}
const heard = new Set<(notice: Notice) => void>();
let latest: Notice = { text: "" };
let stays = false;

export function say(text: string, undo?: Notice["undo"], isHeardAlone = false) {
  latest = { text, undo, isHeardAlone };
  heard.forEach((hear) => hear(latest));
}

export function useNotice(): Notice {
  const [notice, set] = useState(latest);
  useEffect(() => {
    heard.add(set);
    return () => void heard.delete(set);
  }, []);
  return notice;
}

export interface Action {
  busy: boolean;
  error: Problem | null;
  run: <T>(work: () => Promise<T>, said: (result: T) => string, undo?: Notice["undo"]) => Promise<void>;
}

/** Do something, once at a time; its failure stays to be shown until the next is done. */
export function useAction(after: (result: unknown) => void = () => {}): Action {
  const [state, set] = useState<{ busy: boolean; error: Problem | null }>({ busy: false, error: null });
  const run: Action["run"] = async (work, said, undo) => {
    if (state.busy) return;
    set({ busy: true, error: null });
    try {
      const result = await work();
      set({ busy: false, error: null });
      say(said(result), undo);
      after(result);
    } catch (error) {
      set({ busy: false, error: error as Problem });
    }
  };
  return { ...state, run };
}

/** The value as it was when it had not changed for so long. */
export function useCalm(value: string, milliseconds = 60): string {
  const [calm, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return calm;
}

export interface Route {
  name: string;
  id: string;
  query: URLSearchParams;
}

function route(): Route {
  const [path = "", query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, id] = path.split("/");
  return { name: name || "memories", id: id ? decodeURIComponent(id) : "", query: new URLSearchParams(query) };
}

export function useRoute(): Route {
  const [at, set] = useState(route());
  useEffect(() => {
    const changed = () => {
      if (!stays) say("");
      stays = false;
      set(route());
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return at;
}

export const go = (path: string) => {
  location.hash = `#/${path}`;
};

/** Go to another page and still say there what was done. */
export function leave(path: string) {
  stays = true;
  go(path);
}

/** Put what is searched for into the address, without a new step of the browser's history. */
export function note(path: string) {
  const page = (address: string) => address.split(/[?/]/)[0];
  const here = location.hash.replace(/^#\/?/, "");
  if (!here || page(here) === page(path)) history.replaceState(null, "", `#/${path}`);
}

export const focusHeading = () => requestAnimationFrame(() => document.querySelector<HTMLElement>("main h1")?.focus());
