// What ranks make the others lose at the chosen call sites, by rank and time.

const packedLosses = new Map(pictures.site_losses.map((one) => [one.call_site, one]));
const lossesOfSites = new Map();

// Each cell is its distance from the one before, seven bits a byte, and its level.
function unpackLosses(one) {
  const packed = bytesOf(one.cells);
  const levels = new Uint8Array(heat.ranks.length * heat.bins);
  let place = 0;
  for (let i = 0; i < packed.length; ++i) {
    let [distance, shift] = [0, 0];
    for (; packed[i] >= 0x80; shift += 7) distance += (packed[i++] & 0x7f) << shift;
    place += distance + (packed[i++] << shift);
    levels[place] = packed[i];
  }
  return {levels, lost: floatsOf(one.lost_seconds), topUs: one.top_us, isWhole: one.is_whole};
}

// Of several call sites, what is lost at all of them together.
function sumOfLosses(all, isWhole) {
  const us = new Float64Array(heat.ranks.length * heat.bins);
  for (const {levels, topUs} of all) {
    const usOf = Array.from({length: 256}, (_, level) => level === 0 ? 0 : heat.floor_us * (topUs / heat.floor_us) ** (Math.max(0, level - 1) / 254));
    levels.forEach((level, cell) => { us[cell] += usOf[level]; });
  }
  const topUs = us.reduce((most, one) => Math.max(most, one), 10 * heat.floor_us);
  const scale = 254 / Math.log(topUs / heat.floor_us);
  const levels = Uint8Array.from(us, (one) => one === 0 ? 0 : 1 + Math.round(scale * Math.max(0, Math.log(one / heat.floor_us))));
  return {levels, lost: all[0].lost.map((_, bin) => all.reduce((sum, {lost}) => sum + lost[bin], 0)), topUs, isWhole};
}

// Null where no call site and no kind of waiting is chosen, or none that the page has by rank and time.
function chosenLosses() {
  if (selection.site === null && selection.wait === null) return null;
  const sites = report.call_sites.map((_, site) => site)
    .filter((site) => isOfChosenSite(site) && report.call_sites[site].waiting_seconds > 0);
  const all = sites.filter((site) => packedLosses.has(site));
  if (all.length === 0) return null;
  const key = all.join();
  if (!lossesOfSites.has(key)) {
    const losses = all.map((site) => unpackLosses(packedLosses.get(site)));
    lossesOfSites.set(key, losses.length === 1 && sites.length === 1 ? losses[0]
      : sumOfLosses(losses, all.length === sites.length && losses.every((one) => one.isWhole)));
  }
  return lossesOfSites.get(key);
}

// What the picture of ranks over time and the table of late ranks are about.
function lossesInSight() {
  return chosenLosses() ?? {levels: heatMap.levels.caused, lost: heatMap.lost, topUs: heat.caused_top_us, isWhole: true};
}

function lossesText() {
  if (selection.site === null && selection.wait === null) return "";
  const losses = chosenLosses();
  const where = selection.site !== null ? `at ${siteText(report.call_sites[selection.site])}` : `by waiting ${WAITS[selection.wait]}`;
  if (losses !== null)
    return `Only what is lost ${where}${losses.isWhole ? "" : ", where most is lost"}.`;
  return `All call sites: of single ones the page has only the ${count(packedLosses.size)} with most waiting.`;
}
