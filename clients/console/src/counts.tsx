// How much waits for somebody, beside each page of the menu.

import { useEffect, useState } from "react";
import { type Schemas, read, team } from "./api";
import { useNotice } from "./hooks";

export type Counts = { [page: string]: { count: number; says: string } | undefined };

interface Counted {
  page: string;
  says: string;
  load: () => Promise<unknown[]>;
}

const ALL: Counted[] = [
  { page: "memories", says: "to look at", load: () => read<unknown[]>("memories/flagged") },
  {
    page: "recall",
    says: "that may not hold, or are out of date",
    load: async () => {
      const [contradictions, stale] = await Promise.all([
        read<unknown[]>("contradictions", { teams: team() }),
        read<unknown[]>("stale", { team: team() }),
      ]);
      return [...contradictions, ...stale];
    },
  },
  { page: "inbox", says: "waiting or set aside", load: () => read<unknown[]>("inbox") },
  {
    page: "reviews",
    says: "to decide on",
    load: async () => {
      const [proposals, disputes] = await Promise.all([
        read<unknown[]>("proposals", { team: team() }).catch(() => []),
        read<unknown[]>("disputes", { status: "escalated" }),
      ]);
      return [...proposals, ...disputes];
    },
  },
  {
    page: "disputes",
    says: "open",
    load: async () => (await read<Schemas["Dispute"][]>("disputes")).filter(({ status }) => status !== "resolved"),
  },
];

const INBOX = ALL.filter(({ page }) => page === "inbox");
const OTHERS = ALL.filter(({ page }) => page !== "inbox");

type Found = (page: string, found: { count: number; says: string }) => void;

function count(of: Counted[], found: Found) {
  for (const { page, says, load } of of) {
    load().then(
      ({ length }) => found(page, { count: length, says }),
      () => found(page, { count: 0, says }),
    );
  }
}

/** Count again with each `turn`, and after whatever somebody does; the inbox with each page, since it fills by itself. */
export function useCounts(turn: unknown, page: string): Counts {
  const { text, isHeardAlone } = useNotice();
  const done = isHeardAlone ? "" : text;
  const [counts, set] = useState<Counts>({});
  const found: Found = (name, now) => set((before) => ({ ...before, [name]: now }));
  useEffect(() => count(OTHERS, found), [turn]);
  useEffect(() => count(INBOX, found), [turn, page]);
  useEffect(() => {
    if (done) count(ALL, found);
  }, [done]);
  return counts;
}
