// The page, from its data.

function drawCanvases() {
  if (!byId("when").hidden) drawHeat();
  if (!byId("time").hidden) drawTimes();
  if (!byId("call").hidden) drawCallChart();
}

function drawAll() {
  setChartDefaults();
  drawCanvases();
  if (!byId("factors").hidden) drawFactors();
  if (!byId("sizes").hidden) drawSizes();
  if (!byId("weak").hidden) drawWeak();
}

setChartDefaults();
addStalledCalls();
fillOpening();
setUpHeat();
fillRanks();
fillWaits();
fillTimes();
fillCostlyCalls();
fillWholeRun();
fillSites();
fillPhases();
fillGains();
setUpCalls();
setUpFactors();
setUpSizes();
setUpWeak();
fillTrials();
fillAlgorithms();
fillAbout();
for (const one of document.querySelectorAll("main section[id]")) {
  const link = document.querySelector(`nav a[href="#${one.id}"]`);
  if (link) link.hidden = one.hidden;
}
setUpSelection();
// The charts follow the width by themselves, and the scheme's colours not.
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
let resized = 0;
window.addEventListener("resize", () => {
  cancelAnimationFrame(resized);
  resized = requestAnimationFrame(drawCanvases);
});
