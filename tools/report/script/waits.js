// What do ranks wait for in blocking collectives? And what Scalasca calls that.

function fillWaits() {
  byId("waits-box").hidden = report.waits.length === 0;
  if (report.waits.length === 0) return;
  const hasLateExits = report.waits.some((one) => one.late_exit_seconds > 0);
  const ofChosen = () => report.late_ranks.find((one) => one.rank === selection.rank);
  const show = () => {
    const rank = ofChosen();
    fillTable(byId("waits"), [
      {title: "waiting", left: true, words: true, cell: (one) => WAITS[one.kind]},
      {title: "time", cell: (one) => seconds(one.seconds)},
      {title: "of all waiting", cell: (one) => shareBar(ratio(one.seconds, report.waiting_seconds))},
      ...(rank ? [{title: `rank ${rank.rank}`, cell: (one) => seconds(rank.waits[one.kind] ?? 0)}] : []),
      {title: "most on rank", cell: (one) => one.most_rank === null ? "-" : `${one.most_rank}`},
      {title: "there", cell: (one) => seconds(one.most_seconds)},
      {title: "Scalasca's pattern", left: true, cell: (one) => one.scalasca},
      ...(hasLateExits ? [{title: "late exits", cell: (one) => seconds(one.late_exit_seconds)},
        {title: "their pattern", left: true, cell: (one) => one.late_exit_scalasca ?? "-"}] : [])],
    report.waits, "What ranks wait for", (one) => ({wait: one.kind}));
    markChoices();
  };
  show();
  follow((changed) => { if (changed.includes("rank")) show(); });
}
