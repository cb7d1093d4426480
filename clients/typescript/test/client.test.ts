import assert from "node:assert/strict";
import { test } from "node:test";
import { Mneme, MnemeError } from "../dist/index.js";

const baseUrl = process.env.MNEME_TEST_SERVER;
if (!baseUrl) throw new Error("MNEME_TEST_SERVER names the server");

test("what is said is remembered, found, corrected, taken back and erased", async () => {
  const memory = new Mneme({ baseUrl, user: "ann" });
  const [told] = await memory.remember("I live in Oslo.");
  assert.equal(told.status, "stored");
  const [found] = await memory.search("Where does she live?", { limit: 1 });
  assert.equal(found.memory.content, "I live in Oslo.");
  const changed = await memory.update(found.key, "I live in Bergen.", "she moved");
  assert.equal(changed.version, 2);
  const [recalled] = await memory.recall("Where does she live?");
  assert.equal(recalled.text, "I live in Bergen.");
  assert.equal((await memory.history(found.key)).at(-1)?.change.reason, "she moved");
  assert.equal((await memory.undo())?.memory.content, "I live in Oslo.");
  const gone = await memory.forget(found.key, "she asked for it");
  assert.equal(gone.records, 1);
});

test("pages follow one another, and another user sees nothing", async () => {
  const memory = new Mneme({ baseUrl, user: "bob" });
  for (const thing of ["cello", "flute", "drum"]) await memory.add(`Bob plays the ${thing}.`);
  const listed: string[] = [];
  for await (const each of memory.list(2)) listed.push(each.memory.content);
  assert.equal(listed.length, 3);
  assert.deepEqual(await new Mneme({ baseUrl, user: "cas" }).search("cello"), []);
});

test("an error says what to do, and is the same class everywhere", async () => {
  const memory = new Mneme({ baseUrl });
  await assert.rejects(memory.forget("zzz"), (error: MnemeError) => {
    assert.equal(error.kind, "NotFound");
    assert.match(error.message, /has no memory zzz/);
    return error.status === 404;
  });
  await assert.rejects(memory.search(""), { kind: "BadInput" });
});
