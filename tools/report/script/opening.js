// The verdict's figures, and what a reader must know before trusting them.

function tile(title, value, small, isHot = false) {
  return element("div", isHot ? {class: "hot"} : {}, element("dt", {}, title),
    element("dd", {}, value, small ? element("small", {}, small) : null));
}

// What is large of the verdict is its first clause.
function shapeVerdict() {
  const end = report.verdict.search(/[;.] /) + 1 || report.verdict.length;
  byId("verdict").replaceChildren(...withFigures(report.verdict.slice(0, end).replace(/;$/, "")),
    report.verdict[end - 1] === ";" ? element("span", {class: "joint"}, ";") : "",
    element("span", {class: "rest"}, withFigures(report.verdict.slice(end))));
}

// No line ends between a number and its unit.
const withFigures = (text) => text.split(/(\d[\d.,]* (?:%|s|ms|µs|min|h)(?![a-z]))/)
  .map((part, i) => i % 2 === 1 ? element("span", {class: "figure-text"}, part) : part);

function fillOpening() {
  const when = new Date(report.begin_unix_seconds * 1e3);
  byId("program").textContent = [report.program, `${plural(report.ranks, "rank", "ranks")} on ${plural(report.nodes, "node", "nodes")}`, seconds(report.run_seconds),
    Number.isNaN(when.getTime()) ? "" : when.toLocaleString("en", {dateStyle: "medium", timeStyle: "short"})]
    .filter(Boolean).join("  ·  ");
  shapeVerdict();
  byId("in-short").replaceChildren(...withFigures(report.in_short));
  byId("next").hidden = report.next.length === 0;
  byId("next").querySelector("ol").replaceChildren(...report.next.map((step) => element("li", {}, withFigures(step))));
  const top = [...report.late_ranks].sort((a, b) => b.caused_waiting_seconds - a.caused_waiting_seconds)[0];
  const tiles = [tile("Waiting", report.compared_calls > 0 ? share(report.waiting_share) : "-",
    report.compared_calls > 0 ? `of the ${report.events.kept < report.events.begun ? "recorded part of the run" : "run"}, for late ranks: ${seconds(report.waiting_seconds)} of all ranks` : "no calls to compare", report.waiting_share >= 0.01)];
  if (top && top.caused_waiting_seconds > 0) {
    tiles.push(tile("Most waited for", element("button", {type: "button", class: "pick"}, `rank ${top.rank}`),
      `${share(ratio(top.caused_waiting_seconds, report.waiting_seconds))} of all waiting, last ${count(top.times_last)} of ${plural(top.calls, "time", "times")}`));
    makeChoice(tiles.at(-1), {rank: top.rank});
  }
  tiles.push(
    tile("Ranks", count(report.ranks), `on ${plural(report.nodes, "node", "nodes")}${report.ranks_read < report.ranks ? `, ${count(report.ranks_read)} read` : ""}`),
    tile("Run", seconds(report.run_seconds), report.finalized ? "MPI_Init to MPI_Finalize" : "to the end of the record"),
    tile("Calls compared", count(report.compared_calls), "known on all their ranks"),
    tile("Clock", !isAcrossNodes ? "one" : report.clock_error_us === null ? "unknown" : `± ${time(report.clock_error_us)}`,
      isAcrossNodes ? "error between nodes" : "one node, no error between ranks"));
  byId("tiles").replaceChildren(...tiles);
  if (report.notes.length > 0) {
    byId("notes").replaceChildren(element("div", {class: "notes"},
      element("h2", {}, report.partial ? "The record is not complete" : "Before you trust the figures"),
      element("ul", {}, report.notes.map((note) => element("li", {}, note)))));
  }
  byId("incomplete").hidden = !report.partial;
  if (report.pending.length > 0) {
    byId("pending").replaceChildren(element("div", {class: "notes"}, element("h2", {}, "Inside a collective when the record ended"),
      element("ul", {}, report.pending.map((pending) => element("li", {}, pendingText(pending))))));
  }
  for (const place of document.querySelectorAll(".error")) place.textContent = error;
}

function pendingText(pending) {
  const where = pending.call_site.length > 0 ? `, at ${frameText(pending.call_site[0])}` : "";
  const long = pending.waited_seconds >= 0.1 ? `, for ${seconds(pending.waited_seconds)} or longer` : "";
  const absent = pending.conflict ? ` The ranks disagree about the collective: ${pending.conflict}.`
    : pending.not_arrived.length > 0 ? ` Not arrived: ${ranksText(pending.not_arrived)}.`
    : pending.unknown_not_arrived > 0 ? ` Not arrived: ${pending.unknown_not_arrived} of its ranks.` : "";
  return `${ranksText(pending.inside)}: ${pending.name}, call ${count(pending.call)} on ${pending.communicator}${where}${long}.${absent}`;
}
