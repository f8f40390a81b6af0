// What the reader has chosen: a rank, a call site, what ranks wait for, a phase, a moment, a part of the run. Every view shows it. It is in the
// address, so that it can be passed on and the browser's Back undoes it.

const NOTHING = {rank: null, site: null, wait: null, phase: null, at: null, from: null, to: null};
const selection = {...NOTHING};
const runBegin = Math.min(0, heat.begin_seconds);
const runEnd = Math.max(report.run_seconds ?? 0, heat.begin_seconds + heat.bins * heat.bin_seconds);
let section = "";
const followers = [];

// `show` is called after each change, with the names of what has changed.
const follow = (show) => followers.push(show);
const isZoomed = () => selection.from !== null;

// Of an address nothing is taken for granted.
function chosenIn(hash) {
  const wanted = {...NOTHING};
  section = "";
  for (const part of hash.replace(/^#/, "").split("&")) {
    const [name, text] = part.split("=");
    if (text === undefined) section = document.getElementById(name) ? name : "";
    else if (Object.hasOwn(NOTHING, name)) wanted[name] = name === "phase" || name === "wait" ? decoded(text) : Number(text);
  }
  if (!report.late_ranks.some((one) => one.rank === wanted.rank)) wanted.rank = null;
  if (!report.call_sites[wanted.site ?? -1]) wanted.site = null;
  if (!report.waits.some((one) => one.kind === wanted.wait)) wanted.wait = null;
  if (!report.phases.some((one) => one.name === wanted.phase)) wanted.phase = null;
  if (wanted.at === null || !(wanted.at >= runBegin && wanted.at <= runEnd)) wanted.at = null;
  if (wanted.from === null || wanted.to === null || !(wanted.from < wanted.to)) wanted.from = wanted.to = null;
  else Object.assign(wanted, zoomed(wanted.from, wanted.to));
  return wanted;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

// A part of the run that is not empty; all of it is no choice.
function zoomed(from, to) {
  const least = heat.bin_seconds / 50;
  const begin = heat.begin_seconds;
  const end = begin + heat.bins * heat.bin_seconds;
  const length = Math.min(Math.max(to - from, least), end - begin);
  if (length > 0.999 * (end - begin)) return {from: null, to: null};
  const first = Math.min(Math.max((from + to - length) / 2, begin), end - length);
  return {from: Number(first.toFixed(9)), to: Number((first + length).toFixed(9))};
}

function address() {
  const parts = Object.entries(selection).filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `#${[section, ...parts].filter(Boolean).join("&")}`;
}

function apply(wanted) {
  const changed = Object.keys(NOTHING).filter((name) => selection[name] !== wanted[name]);
  Object.assign(selection, wanted);
  if (changed.length > 0) for (const show of followers) show(changed);
  return changed.length > 0;
}

// `isStep`: one of many in a row, which Back need not undo one by one.
function select(changes, isStep = false) {
  const wanted = {...selection, ...changes};
  if (wanted.at !== null) wanted.at = Number(wanted.at.toFixed(6));
  if (!apply(wanted)) return;
  if (isStep) history.replaceState(null, "", address());
  else history.pushState(null, "", address());
}

const clearSelection = () => select(NOTHING);

// What `choice` names is chosen, or no longer, if it was.
function toggle(choice) {
  const is = isChosen(choice);
  select(Object.fromEntries(Object.entries(choice).map(([name, value]) => [name, is ? null : value])));
}

const isEqual = (name, value) => value !== null && selection[name] !== null &&
  (name === "at" ? Math.abs(selection.at - value) < 2e-6 : selection[name] === value);
const isChosen = (choice) => Object.entries(choice).every(([name, value]) => value === null || isEqual(name, value)) &&
  Object.values(choice).some((value) => value !== null);

// Of a call site, or of a call that has none: it is the chosen one, or in its calls ranks wait for what is chosen.
const isOfChosenSite = (site) => selection.site !== null ? site === selection.site
  : selection.wait === null || report.call_sites[site]?.waits_for === selection.wait;

// Rows and cards of what can be chosen; chosen, or the same rank, call site or phase, or one of the call sites with the waiting
// that is chosen; or at a time that is not shown.
function markChoices() {
  for (const one of document.querySelectorAll("[data-choice]")) {
    const {choice} = one;
    const is = isChosen(choice);
    const names = Object.keys(choice).filter((name) => name !== "at" && choice[name] !== null && selection[name] !== null);
    one.classList.toggle("chosen", is);
    const isKin = choice.wait !== undefined ? choice.wait === report.call_sites[selection.site]?.waits_for
      : selection.wait !== null && choice.site !== undefined && choice.site !== null && report.call_sites[choice.site].waits_for === selection.wait;
    one.classList.toggle("related", !is && (names.length > 0 ? names.every((name) => isEqual(name, choice[name])) : isKin));
    one.classList.toggle("outside", isZoomed() && Number.isFinite(choice.at) && (choice.at < selection.from || choice.at > selection.to));
    one.querySelector(".pick")?.setAttribute("aria-pressed", String(is));
  }
}

// A button in `one` chooses, and so does a click beside it.
function makeChoice(one, choice) {
  one.choice = choice;
  one.setAttribute("data-choice", "");
  one.addEventListener("click", (event) => {
    if (event.target.closest("a, summary, button:not(.pick)")) return;
    event.stopPropagation();
    toggle(choice);
  });
}

function showChips() {
  const {rank, site, wait, phase, at, from, to} = selection;
  const chips = [[rank, () => `rank ${rank}`, {rank: null}],
    [site, () => siteText(report.call_sites[site]), {site: null}],
    [wait, () => `waiting ${WAITS[wait]}`, {wait: null}],
    [phase, () => `phase ${phase || "(none)"}`, {phase: null}],
    [at, () => `at ${seconds(at)}`, {at: null}],
    [from, () => `${seconds(from)} to ${seconds(to)}`, {from: null, to: null}]].filter(([value]) => value !== null);
  byId("selection").hidden = chips.length === 0;
  byId("chips").replaceChildren(...chips.map(([, text, without]) => {
    const chip = element("button", {type: "button", class: "chip", "aria-label": `Not only ${text()}`},
      element("span", {}, text()), element("span", {"aria-hidden": "true"}, "×"));
    chip.addEventListener("click", () => select(without));
    return chip;
  }));
}

function setUpSelection() {
  follow(showChips);
  follow(markChoices);
  byId("clear").addEventListener("click", clearSelection);
  window.addEventListener("popstate", () => apply(chosenIn(location.hash)));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") clearSelection(); });
  for (const link of document.querySelectorAll("nav a")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      section = link.hash.slice(1);
      byId(section).scrollIntoView();
      history.pushState(null, "", address());
    });
  }
  apply(chosenIn(location.hash));
  markChoices();
  if (section !== "") byId(section).scrollIntoView({behavior: "instant"});
}
