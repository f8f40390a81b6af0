// Chart.js, in the page's colours.

const charts = {};

function draw(id, label, configuration) {
  if (charts[id]) charts[id].destroy();
  byId(id).setAttribute("aria-label", label);
  charts[id] = new Chart(byId(id), configuration);
}

function setChartDefaults() {
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.font.size = 12;
  Chart.defaults.color = colour("soft");
  Chart.defaults.borderColor = colour("line");
  Chart.defaults.plugins.tooltip.backgroundColor = colour("text");
  Chart.defaults.plugins.tooltip.titleColor = colour("surface");
  Chart.defaults.plugins.tooltip.bodyColor = colour("surface");
  Chart.defaults.plugins.tooltip.displayColors = false;
  Chart.defaults.plugins.tooltip.padding = 9;
  Chart.defaults.plugins.legend.labels.boxWidth = 12;
  Chart.defaults.plugins.legend.labels.boxHeight = 12;
}

const axis = (text, more = {}) => ({title: {display: Boolean(text), text}, grid: {color: colour("line")}, ...more});
