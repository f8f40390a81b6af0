"""Weakly consistent collectives (Iakymchuk et al. 2021, III and V a to c; Faustino 2020, 3)."""
from evidence.experiment import LAUNCH, MPI, Experiment, Figure, Line, bench, box, markdown, number, size

EVENTUALLY = "Iakymchuk et al. 2021"
SLACKS = "0,1,2,4,8,16,64"


def where(name):
    words = name.split(".")
    place = words[-1]
    return f"{MPI[words[-2]]}, " + (f"{place.replace('x', ' x ')}, pretended machines" if "x" in place
                                    else f"{place} ranks")


def thresholds(results):
    """(where, collective, bytes) -> threshold -> us, 0: native."""
    found = {}
    for name, measured in results.items():
        for row in measured["rows"]:
            found.setdefault((where(name), row["collective"], row["bytes"]), {})[row["threshold"] or 0] = (
                row["inside_us"]["p50"])
    return found


def threshold_table(results):
    rows = [(collective, place, size(count), *(number(us.get(share)) for share in (0, 1, 0.75, 0.5, 0.25)),
             f"{us[1] / us[0.25]:.2f}") for (place, collective, count), us in thresholds(results).items()]
    return markdown(("", "", "bytes", "native, us", "100 %", "75 %", "50 %", "25 %", "25 % beside 100 %"), rows)


def threshold_headline(results):
    parts = []
    for name in ("threshold_bcast", "threshold_reduce"):
        found = [(us[1] / us[0.25], f"{place}, {size(count)}")
                 for (place, collective, count), us in thresholds(results).items() if collective == name]
        if found:
            parts.append(f"{name} of a quarter up to {max(found)[0]:.2f} times as fast as of all ({max(found)[1]})")
    return "; ".join(parts) or "not measured"


def threshold_figure(results):
    lines = [Line(f"{collective}, {place}, {size(count)}", [100 * share for share in sorted(us) if share],
                  [us[share] / us[1] for share in sorted(us) if share])
             for (place, collective, count), us in thresholds(results).items() if count >= 1 << 20]
    return Figure("threshold, % of the data", "time, 1: of all data", lines, log_x=False)


def slack_rows(results):
    for name, measured in results.items():
        for row in measured["rows"]:
            if row["algorithm"] != "native":
                yield where(name), row["algorithm"], row["slack"], row


def slack_table(results):
    rows = [(place, algorithm, slack, number(row["inside_us"]["mean"]), number(row["waited_us"]["mean"]),
             number(row["staleness_mean"]), number(row["calls_per_second"]))
            for place, algorithm, slack, row in slack_rows(results)]
    return markdown(("", "algorithm", "slack", "us in the call", "waited, us", "staleness", "calls per second"), rows)


def slack_headline(results):
    waited = {}
    for place, algorithm, slack, row in slack_rows(results):
        waited.setdefault((place, algorithm), {})[slack] = row["waited_us"]["mean"]
    found = [(min(slack for slack in us if us[slack] < 0.05 * us[0]), f"{algorithm}, {place}")
             for (place, algorithm), us in waited.items() if min(us.values()) < 0.05 * us[0]]
    if not found:
        return "the waiting never falls below a twentieth of that of slack 0" if waited else "not measured"
    return (f"the waiting falls below a twentieth of that of slack 0 from slack {min(found)[0]} on ({min(found)[1]}), "
            f"in {len(found)} of {len(waited)} cases")


def slack_figure(results):
    points = {}
    for place, algorithm, slack, row in slack_rows(results):
        points.setdefault(f"{algorithm}, {place}", []).append((slack, row["waited_us"]["mean"]))
    lines = [Line(name, [x for x, _ in one], [y for _, y in one]) for name, one in points.items()]
    return Figure("slack", "waiting in a call, us", lines, log_x=False)


THRESHOLD = ("-m", "80000:8000000:100", "--threshold", "0.25,0.5,0.75,1", "--seconds", "0.3")

EXPERIMENTS = (
    Experiment("thresholds", "Broadcast and reduction of a part of the data", EVENTUALLY,
               "V b, c: a quarter of the data 3.25 to 3.58 times as fast as all of it (broadcast), about 5 "
               "times at 8 MB (reduce)",
               tuple(make(f"thresholds.{word}.{mpi}.{place}", mpi, *numbers, f"threshold_{word}", *THRESHOLD)
                     for word in ("bcast", "reduce") for mpi in LAUNCH
                     for make, place, numbers in ((bench, "4", (4,)), (box, "4x1", (4, 1)))),
               threshold_table, threshold_headline, threshold_figure),
    Experiment("slack", "Stale synchronous parallel allreduce: waiting over slack", f"{EVENTUALLY}, Faustino 2020",
               "V a: waiting shrinks with the slack until there is none; the hypercube itself is slower than MPI's "
               "allreduce of large vectors",
               tuple(bench(f"slack.{mpi}.4", mpi, 4, "ssp_allreduce", "-m", "80000", "--slack", SLACKS, "--compute",
                           "1000", "--pattern", "random", "--skew", "2000", "--seconds", "0.4", weight=20)
                     for mpi in LAUNCH),
               slack_table, slack_headline, slack_figure),
)
