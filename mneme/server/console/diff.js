// Differences between two texts, by word.

const words = (text) => text.match(/\s+|[\p{L}\p{N}_'’]+|[^\s]/gu) ?? [];

// Return runs of [kind, text], where kind is "same", "del" or "ins".
export function compare(older, newer) {
  const before = words(older), after = words(newer);
  let start = 0, end = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  const least = Math.min(before.length, after.length) - start;
  while (end < least && before.at(-1 - end) === after.at(-1 - end)) end++;
  const middle = between(before.slice(start, before.length - end), after.slice(start, after.length - end));
  const runs = [["same", before.slice(0, start)], ...middle, ["same", before.slice(before.length - end)]];
  return joined(runs.map(([kind, found]) => [kind, found.join("")]));
}

const MOST = 4_000_000; // cells of the table; two texts of 2000 words each

function between(before, after) {
  if (before.length * after.length > MOST) return [["del", before], ["ins", after]];
  const width = after.length + 1, common = new Uint16Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      const here = i * width + j;
      common[here] = before[i] === after[j] ? common[here + width + 1] + 1
        : Math.max(common[here + width], common[here + 1]);
    }
  }
  return walked(before, after, common, width);
}

function walked(before, after, common, width) {
  const runs = [];
  let i = 0, j = 0;
  while (i < before.length || j < after.length) {
    const here = i * width + j;
    if (i < before.length && j < after.length && before[i] === after[j]) {
      runs.push(["same", [before[i++]]]);
      j++;
    } else if (j === after.length || (i < before.length && common[here + width] >= common[here + 1])) {
      runs.push(["del", [before[i++]]]);
    } else {
      runs.push(["ins", [after[j++]]]);
    }
  }
  return runs;
}

// Put neighbours of one kind together, and a change's deletions before its insertions.
function joined(runs) {
  const found = [];
  let changed = { del: "", ins: "" };
  const flush = () => {
    for (const kind of ["del", "ins"]) if (changed[kind]) found.push([kind, changed[kind]]);
    changed = { del: "", ins: "" };
  };
  runs.forEach(([kind, text], at) => {
    const isGap = kind === "same" && /^\s+$/.test(text) && runs[at - 1]?.[0] !== "same"
      && runs.slice(at + 1).find(([, each]) => each)?.[0] !== "same" && (changed.del || changed.ins);
    if (!text) return;
    if (isGap) {
      changed.del += text;
      changed.ins += text;
    } else if (kind === "same") {
      flush();
      if (found.at(-1)?.[0] === "same") found.at(-1)[1] += text;
      else found.push(["same", text]);
    } else {
      changed[kind] += text;
    }
  });
  flush();
  return found;
}
