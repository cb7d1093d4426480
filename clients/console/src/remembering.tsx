// What is being remembered just now: the inbox is asked again while something waits in it.

import { Loader, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { type Schemas, read } from "./api";
import { say } from "./hooks";
import { plural } from "./parts";

const EVERY = 1500; // milliseconds while something waits
const AT_REST = 6000;
const isWaiting = (letter: Schemas["Letter"]) => letter.status === "waiting";

/** Show how many messages wait, and call `done` whenever one of them was remembered. */
export function useRemembering(done: () => void) {
  const [waiting, set] = useState(0);
  useEffect(() => {
    const control = new AbortController();
    let before = 0;
    let timer = 0;
    const look = async () => {
      const letters = await read<Schemas["Letter"][]>("inbox", {}, control.signal).catch(() => null);
      if (control.signal.aborted) return;
      const now = letters ? letters.filter(isWaiting).length : before;
      if (now < before) {
        say(now ? `${plural(before - now, "message")} remembered, ${now} left.` : "All messages are remembered.");
        done();
      }
      before = now;
      set(now);
      timer = window.setTimeout(look, now ? EVERY : AT_REST);
    };
    look();
    return () => {
      control.abort();
      clearTimeout(timer);
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  if (!waiting) return null;
  return (
    <Text size="sm" my="xs" className="remembering">
      <Loader size={14} mr={6} aria-hidden /> Remembering {plural(waiting, "message")}…
    </Text>
  );
}
