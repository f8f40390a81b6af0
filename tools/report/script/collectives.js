// Which collectives, of what size?

function drawSizes() {
  const figures = report.collectives;
  const bars = (id, label, value, text) => {
    byId(id).parentElement.style.height = `${figures.length * 34 + 84}px`;
    draw(id, `${label} by collective and message size`, {
      type: "bar",
      data: {labels: figures.map((one) => one.name), datasets: SIZES.map((size) => ({label: SIZE_TEXTS[size],
        data: figures.map((one) => value(one.by_size[size])), backgroundColor: colour(size), maxBarThickness: 26}))},
      options: {
        indexAxis: "y",
        scales: {x: axis("", {stacked: true, ticks: {maxTicksLimit: 5, callback: text}}), y: axis("", {stacked: true, grid: {display: false}})},
        plugins: {legend: {position: "top", align: "start"},
          tooltip: {callbacks: {label: (item) => `${item.dataset.label}: ${text(item.raw)}`}}},
      },
    });
  };
  bars("calls-chart", "Calls", (size) => size.calls, count);
  bars("time-chart", "Time", (size) => size.seconds, (value) => value === 0 ? "0" : seconds(value));
}

function setUpSizes() {
  if (report.collectives.length === 0) {
    byId("sizes").hidden = true;
    return;
  }
  const total = report.collectives.reduce((sum, one) => sum + one.seconds, 0);
  fillTable(byId("collectives"), [
    {title: "call", left: true, cell: (one) => one.name},
    {title: "calls", cell: (one) => count(one.calls)},
    {title: "bytes", cell: (one) => bytes(one.bytes)},
    {title: "time", cell: (one) => seconds(one.seconds)},
    {title: "per call", cell: (one) => time(one.seconds * 1e6 / one.calls)},
    {title: "of it waiting", cell: (one) => one.inside_us ? seconds(one.waiting_seconds) : "-"},
    {title: "excess p50", cell: (one) => one.excess_us ? time(one.excess_us.p50) : "-"},
    {title: "excess p99", cell: (one) => one.excess_us ? time(one.excess_us.p99) : "-"},
    {title: "share of time", cell: (one) => shareBar(ratio(one.seconds, total), true)}], report.collectives, "Collectives, summed over ranks");
  drawSizes();
}
