// The page, from its data.

function drawAll() {
  setChartDefaults();
  if (!byId("when").hidden) drawHeat();
  if (!byId("call").hidden) drawCall();
  if (!byId("factors").hidden) drawFactors();
  if (!byId("sizes").hidden) drawSizes();
  if (!byId("weak").hidden) drawWeak();
}

setChartDefaults();
fillOpening();
setUpHeat();
fillRanks();
fillTimes();
fillCostlyCalls();
fillWholeRun();
fillSites();
setUpCalls();
setUpFactors();
setUpSizes();
setUpWeak();
fillAlgorithms();
fillAbout();
for (const section of document.querySelectorAll("main section[id]")) {
  const link = document.querySelector(`nav a[href="#${section.id}"]`);
  if (link) link.hidden = section.hidden;
}
// The charts follow the width by themselves, and the scheme's colours not.
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
let resized = 0;
window.addEventListener("resize", () => {
  cancelAnimationFrame(resized);
  resized = requestAnimationFrame(() => { if (!byId("when").hidden) drawHeat(); });
});
