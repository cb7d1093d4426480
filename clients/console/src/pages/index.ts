// The pages of the console, in the order of its menu: the user's own, and the team's.

import {
  IconAlertTriangle,
  IconBook2,
  IconChartBar,
  IconChecklist,
  IconClock,
  IconDatabase,
  IconEye,
  IconHome,
  IconInbox,
  IconMessage,
  IconMessages,
  IconNotebook,
  IconSearch,
  IconTopologyStar3,
} from "@tabler/icons-react";
import type { ComponentType } from "react";
import { AccessPage } from "./access";
import { CardPage, Cards } from "./cards";
import { ConversationPage, Conversations } from "./conversations";
import { DiscussionPage, DiscussionsPage } from "./discussions";
import { DisputePage, Disputes } from "./disputes";
import { Everything, TracePage } from "./everything";
import { RunPage, Runs } from "./household";
import { InboxPage } from "./inbox";
import { Memories } from "./memories";
import { Memory } from "./memory";
import { MetricsPage } from "./metrics";
import { NamesPage } from "./names";
import { PoolPage, PoolsPage } from "./pools";
import { ReviewPage, Reviews } from "./reviews";
import { Timeline } from "./timeline";

export interface Page {
  name: string;
  title: string;
  icon: typeof IconHome;
  all: ComponentType<{ query: URLSearchParams }>;
  one?: ComponentType<{ id: string; query: URLSearchParams }>;
}

export const GROUPS: { title: string; pages: Page[] }[] = [
  {
    title: "Yours",
    pages: [
      { name: "memories", title: "Memories", icon: IconDatabase, all: Memories, one: Memory },
      { name: "recall", title: "Recall", icon: IconSearch, all: Everything, one: TracePage },
      { name: "conversations", title: "Conversations", icon: IconMessage, all: Conversations, one: ConversationPage },
      { name: "inbox", title: "Inbox", icon: IconInbox, all: InboxPage },
      { name: "timeline", title: "Timeline", icon: IconClock, all: Timeline },
      { name: "names", title: "Names", icon: IconTopologyStar3, all: NamesPage },
      { name: "access", title: "Access", icon: IconEye, all: AccessPage },
    ],
  },
  {
    title: "The team's",
    pages: [
      { name: "reviews", title: "Reviews", icon: IconChecklist, all: Reviews, one: ReviewPage },
      { name: "cards", title: "Cards", icon: IconNotebook, all: Cards, one: CardPage },
      { name: "disputes", title: "Disputes", icon: IconAlertTriangle, all: Disputes, one: DisputePage },
      { name: "metrics", title: "Metrics", icon: IconChartBar, all: MetricsPage },
      { name: "discussions", title: "Discussions", icon: IconMessages, all: DiscussionsPage, one: DiscussionPage },
      { name: "pools", title: "Pools", icon: IconBook2, all: PoolsPage, one: PoolPage },
      { name: "household", title: "Household", icon: IconHome, all: Runs, one: RunPage },
    ],
  },
];
