// The pages of the console, in the order of its menu.

import { InboxPage } from "./inbox.js";
import { Memories } from "./memories.js";
import { Memory } from "./memory.js";

export const PAGES = [
  { name: "memories", title: "Memories", all: Memories, one: Memory },
  { name: "inbox", title: "Inbox", all: InboxPage },
];
