// What ranks make the others lose at the chosen call site, by rank and time.

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

// Null where no call site is chosen, or one that the page has not by rank and time.
function chosenLosses() {
  const one = packedLosses.get(selection.site);
  if (one === undefined) return null;
  if (!lossesOfSites.has(selection.site)) lossesOfSites.set(selection.site, unpackLosses(one));
  return lossesOfSites.get(selection.site);
}

// What the picture of ranks over time and the table of late ranks are about.
function lossesInSight() {
  return chosenLosses() ?? {levels: heatMap.levels.caused, lost: heatMap.lost, topUs: heat.caused_top_us, isWhole: true};
}

function lossesText() {
  if (selection.site === null) return "";
  const losses = chosenLosses();
  if (losses !== null)
    return `Only what is lost at ${siteText(report.call_sites[selection.site])}${losses.isWhole ? "" : ", where most is lost"}.`;
  return `All call sites: of single ones the page has only the ${count(packedLosses.size)} with most waiting.`;
}
