// Where in the program?

const PATTERNS = {unknown: "too few imbalanced calls", balanced: "balanced", persistent: "persistent straggler", rotating: "rotating",
  drifting: "drifting", random: "random"};

function patternOf(site) {
  const title = element("h4", {}, "Pattern");
  if (site.compared_calls === 0) return element("div", {}, title, element("span", {class: "badge"}, "not compared"));
  const ranks = [...new Set(site.stragglers.map((one) => one.rank))];
  const more = ranks.length > 4 ? " and others" : "";
  const name = PATTERNS[site.pattern] + (ranks.length === 0 ? "" : `: ${ranks.slice(0, 4).map((rank) => `rank ${rank}`).join(", ")}${more}`);
  const communicators = ranks.length > 1 ? `${plural(site.straggler_communicators, "communicator", "communicators")}, not all with the same one; ` : "";
  const known = site.predictability !== null;
  return element("div", {}, title, element("span", {class: `badge ${site.pattern}`}, name),
    known ? element("div", {class: "meter", "aria-hidden": "true"}, element("i", {part: site.predictability})) : null,
    element("p", {class: "small"}, site.pattern === "balanced" ? "arrivals within the time of ten messages on average"
      : `${communicators}${known ? `predictability ${site.predictability.toFixed(2)}; ` : ""}${count(site.uneven_calls)} of ${plural(site.compared_calls, "call", "calls")} imbalanced`));
}

function siteCard(site, index) {
  const isShown = pictures.groups.some((one) => one.call_site === index);
  const more = site.frames.length > 0 ? element("ol", {class: "stack"}, site.frames.map((frame) =>
    element("li", {class: "frame", title: `${frame.file || frame.module}${frame.line ? `:${frame.line}` : ""}`}, frameText(frame)))) : null;
  const button = isShown ? element("button", {type: "button"}, "Show its calls") : null;
  if (button) {
    button.addEventListener("click", () => {
      select({site: index});
      byId("call").scrollIntoView();
      byId("call-number").focus({preventScroll: true});
    });
  }
  const lasts = site.last.slice(0, 4);
  const card = element("article", {class: "site"},
    element("div", {}, element("h3", {}, element("button", {type: "button", class: "pick"}, site.name)), more, button),
    element("div", {}, element("dl", {},
      element("dt", {}, "waiting"), element("dd", {}, site.waiting_seconds === null ? "-" : `${seconds(site.waiting_seconds)} (${share(ratio(site.waiting_seconds, report.waiting_seconds))})`),
      element("dt", {}, "worst-case"), element("dd", {}, site.compared_calls > 0 ? `${time(site.worst_us)} mean` : "-"),
      element("dt", {}, "excess"), element("dd", {}, seconds(site.excess_seconds)),
      element("dt", {}, "calls"), element("dd", {}, `${count(site.calls)} in all`))),
    patternOf(site),
    lasts.length === 0 ? null : element("div", {}, element("h4", {}, "Most often last"),
      element("ul", {class: "lasts"}, lasts.map((last) => {
        const part = ratio(last.times_last, site.compared_calls);
        const item = element("li", {}, element("button", {type: "button", class: "pick"}, `rank ${last.rank}`),
          element("i", {part, "aria-hidden": "true"}), element("span", {}, share(part)));
        makeChoice(item, {rank: last.rank});
        return item;
      }))));
  makeChoice(card, {site: index});
  return card;
}

function fillSites() {
  const all = report.call_sites.map((site, index) => [site, index]).filter(([site]) => site.compared_calls > 0 || site.waiting_seconds !== null || site.calls > 0);
  if (all.length === 0) {
    byId("sites").replaceChildren(element("p", {}, "The run has no call sites (PAPAYA_CALLSITES=1 records them)."));
    return;
  }
  const again = showMore(byId("sites-all"), () => all, SITES_AT_FIRST, "call sites",
    (rows) => byId("sites").replaceChildren(...rows.map(([site, index]) => siteCard(site, index))), ([, index]) => index === selection.site);
  follow((changed) => { if (changed.includes("site") && !byId("sites").querySelector(".site.chosen")) again(); });
}
