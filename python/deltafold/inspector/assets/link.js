// The address of a position on the page: its fragment.
//
// In: the event, the search and the group of each recording.  Out: the fragment, and back.
//
// Law: a fragment comes from outside; what it does not say rightly is ignored.

/** Returns what a fragment says of each recording; the event counts from 0, null if it says none. */
export function readLink(fragment, tracks) {
  const members = new URLSearchParams(fragment.replace(/^#/, ""));
  const [events, queries, groups] = ["event", "find", "show"].map((name) => members.getAll(name));
  return tracks.map((track, index) => ({
    event: eventOf(events[index], track.count),
    query: queries[index] ?? "",
    group: groups[index] ?? "",
  }));
}

function eventOf(text, count) {
  if (text === "end") return count - 1;
  const number = /^\d{1,9}$/.test(text ?? "") ? Number(text) : 0;
  return number >= 1 && number <= count ? number - 1 : null;
}

/** Returns the fragment of a position. */
export function writeLink(positions) {
  const members = new URLSearchParams();
  for (const { event, count } of positions) members.append("event", event === count - 1 ? "end" : String(event + 1));
  for (const name of ["find", "show"]) {
    if (positions.some((position) => position[name] !== "")) {
      for (const position of positions) members.append(name, position[name]);
    }
  }
  return `#${members}`;
}
