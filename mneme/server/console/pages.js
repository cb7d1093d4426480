// The pages of the console, in the order of its menu.

import { CardPage, Cards } from "./cards.js";
import { DiscussionPage, DiscussionsPage } from "./discussions.js";
import { DisputePage, Disputes } from "./disputes.js";
import { Entities } from "./entities.js";
import { Everything, TracePage } from "./everything.js";
import { RunPage, Runs } from "./household.js";
import { InboxPage } from "./inbox.js";
import { Memories } from "./memories.js";
import { Memory } from "./memory.js";
import { MetricsPage } from "./metrics.js";
import { PoolPage, PoolsPage } from "./pools.js";
import { ReviewPage, Reviews } from "./reviews.js";
import { Timeline } from "./timeline.js";

export const PAGES = [
  { name: "memories", title: "Memories", all: Memories, one: Memory },
  { name: "recall", title: "Everything", all: Everything, one: TracePage, team: true },
  { name: "inbox", title: "Inbox", all: InboxPage },
  { name: "timeline", title: "Timeline", all: Timeline },
  { name: "names", title: "Names", all: Entities },
  { name: "reviews", title: "Reviews", all: Reviews, one: ReviewPage, team: true },
  { name: "cards", title: "Cards", all: Cards, one: CardPage, team: true },
  { name: "disputes", title: "Disputes", all: Disputes, one: DisputePage, team: true },
  { name: "metrics", title: "Metrics", all: MetricsPage, team: true },
  { name: "discussions", title: "Discussions", all: DiscussionsPage, one: DiscussionPage, team: true },
  { name: "pools", title: "Pools", all: PoolsPage, one: PoolPage, team: true },
  { name: "household", title: "Household", all: Runs, one: RunPage, team: true },
];
