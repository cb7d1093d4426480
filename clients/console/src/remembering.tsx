// What is being remembered just now: the page asks again, more often while a message waits.

import { Loader, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { type Schemas, read } from "./api";
import { say } from "./hooks";
import { plural } from "./parts";

const EVERY = 1500; // milliseconds while something waits
const AT_REST = 4000;

async function looked(signal: AbortSignal) {
  const [letters, [latest]] = await Promise.all([
    read<Schemas["Letter"][]>("inbox", {}, signal),
    read<Schemas["Version"][]>("memories/changes", { limit: 1 }, signal),
  ]);
  const waiting = letters.filter(({ status }) => status === "waiting").length;
  return { waiting, latest: latest ? `${latest.key}#${latest.version}` : "" };
}

/** Show how many messages wait, and call `done` whenever one was remembered, or a memory changed by another door. */
export function useRemembering(done: () => void) {
  const [waiting, set] = useState(0);
  useEffect(() => {
    const control = new AbortController();
    let before: Awaited<ReturnType<typeof looked>> | undefined;
    let timer = 0;
    const look = async () => {
      const now = await looked(control.signal).catch(() => before);
      if (control.signal.aborted) return;
      if (before && now && now.waiting < before.waiting) {
        const left = now.waiting ? `, ${now.waiting} left` : "";
        say(`${plural(before.waiting - now.waiting, "message")} remembered${left}.`);
      }
      if (before && now && (now.waiting < before.waiting || now.latest !== before.latest)) done();
      before = now;
      set(now?.waiting ?? 0);
      timer = window.setTimeout(look, now?.waiting ? EVERY : AT_REST);
    };
    look();
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, []);
  if (!waiting) return null;
  return (
    <Text size="sm" my="xs">
      <Loader size={14} mr={6} aria-hidden /> Remembering {plural(waiting, "message")}…
    </Text>
  );
}
