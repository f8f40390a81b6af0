#!/usr/bin/env python3
"""The order inside folders: what a file includes of its own folder stands on an earlier line of ORDER.

So there are no cycles, and nothing includes upward or sideways. Between folders, see includes.py.
"""
import re

from frame import COMPILED, files_of, includes_of, run

# Lowest first. A name without an ending is a header with its source; FOLDER/ is what no other line names in there.
ORDER = {
    "algorithms": [
        "datatype",
        "kernels/reduce.hpp",
        "kernels/targets",
        "kernels/loops kernels/reduce.cpp",
        "patterns/binomial",
        "patterns/",
        "waiting/futex waiting/switch_over",
        "waiting/wait",
        "transport/arena transport/link transport/messages transport/on_failure transport/out_of_band "
        "transport/regions transport/single_copy",
        "transport/deposit_arena transport/mpi/mpi_messages transport/mpi/mpi_out_of_band transport/mpi/team_messages "
        "transport/notified transport/shared_out_of_band transport/ucx/ucx_plugin",
        "transport/arena_notified transport/mpi/node_window transport/shared_notified",
        "transport/transport",
        "transport/mpi/mpi_notified transport/ucx/ucx_window",
        "transport/mpi/mpi_transport transport/ucx/ucx_notified",
        "transport/ucx/ucx_transport",
        "team",
        "sliding_window",
        "radix rounds streams",
        "algorithm",
        "chain exchange hierarchy steps tree",
        "chunk_pipeline",
        "costs dissemination halving leaders_exchange sorted_ring straggler",
        "block_reduction reduce/pairwise root_deposits",
        "allgather/ allreduce/ alltoall/ barrier/ bcast/ gather/ reduce/ reduce_scatter/ reduce_scatter_block/ "
        "scatter/ weak/weak",
        "weak/combine weak/node_words weak/running_total weak/service weak/ssp.hpp weak/threshold",
        "weak/relay",
        "weak/partial_allreduce.hpp weak/wait_avoiding_group.hpp",
        "weak/group_across_nodes weak/partial_across_nodes",
        "weak/",
    ],
    "interpose": [
        "standard_abi/counted_functions",
        "standard_abi/functions",
        "standard_abi/mpi",
        "agreement comm_facts copy_communicator decide device_memory end_job function_names implementation inner_calls "
        "lone_rank measure mpi_features output preload_children preload_module "
        "presence resources results symbols text_of weak_service "
        "wrappers.hpp",
        "aliases next world",
        "background_progress peers",
        "approx_sites attention census flavour job make_wire mpi_agreement mpi_readers preload_aside reports "
        "scratch site_names trampoline",
        "preload_filter preload_layers watch",
        "between_nodes node_memory oddities output_folder plan preload",
        "async_setup mpi_channels mpi_types records",
        "communicator",
        "hints reduction",
        "why_native",
        "call staging",
        "ready_plan",
        "combine",
        "trial_classes",
        "trial_sites",
        "blocks",
        "trials",
        "runtime",  # what stands above is entered from outside; what stands below is passed what it needs
        "control dispatch operation run verdicts weak_calls",
        "verify",
        "timed_rows",
        "waited_for",
        "timed_calls",
        "approx_error message queue replace replace_alltoallv",
        "nonblocking",
        "approx_call",
        "approx",
        "persistent repeat",
        "call_shapes stall wrappers_waiting",
        "wrappers.cpp wrappers_neighbourhood",
        "lifecycle",
        "wrappers_communicators",
    ],
    "tuning": [
        "call_costs json_text named_site native_algorithms rule sample_exchange site_period trial_budget",
        "load selection_text trial",
        "approx_rules tuning_file",
        "selection",
    ],
    "api": [
        "choice error fortran leaver peer_processes process shared_segment",
        "terms",
        "handle.hpp meeting recording",
        "instance notified_segment",
        "create finalize segment service weak",
    ],
    "profiler/analysis": [
        "archive readers",
        "alpha approx computing costly_call distribution event_facts in_order.hpp outcome patterns_of_sites "
        "record_facts relief.hpp savings.hpp shared_reading usage",
        "run_times trials.hpp wait_kinds weak what_if.hpp whole_run wrong_results.hpp",
        "rank_times",
        "analysis.hpp",
        "delays horovod imbalance sites totals",
        "communicator_names",
        "matching trials.cpp wrong_results.cpp",
        "arrivals call_stream collective_waits exit_model pending relief.cpp",
        "savings.cpp what_if.cpp",
        "compare event_stream",
        "costly_calls critical_path description efficiencies losses meanwhile origins run_parts wait_sums",
        "call_sums",
        "replays",
        "analysis.cpp",
        "live_view",
    ],
    "profiler/read": [
        "packed rank_header shared.hpp units",
        "read.hpp version_3",
        "file_source read_approx read_spill read_totals read_trials read_weak texts",
        "clocks event_reader frames read_record",
        "read_stacks same_run",
        "read.cpp",
    ],
    "profiler/record": [
        "approx_format checksum failed_pages format identity python_frames quick_polls thread_state waits "
        "weak_format zstd",
        "mapped_file",
        "blocked_stack live node_arrivals node_boards spill_format stack_request usage",
        "spill stack_requests",
        "recorder",
        "approx_recorder call_sites weak_recorder",
        "mpi_times stack_dump",
    ],
    "profiler/report": [
        "notes site_losses stacks",
        "elsewhere",
        "pictures.hpp",
        "pictures.cpp pictures_json",
        "finding uneven",
        "lateness",
        "verdict",
        "advice",
        "json/values.hpp report.hpp text/layout text/sections.hpp",
        "files json json/ report.cpp stall talp text text/",
    ],
}

# What still breaks the order: (file, what it includes): why.
UPWARD = {
}


def line_of(name, lines):
    """(line, entry) of the longest entry that names the file, or None."""
    stem = re.sub(r"\.\w+$", "", name)
    matching = [(len(entry), line, entry) for line, entries in enumerate(lines) for entry in entries.split()
                if entry in (name, stem) or (entry.endswith("/") and name.startswith(entry))]
    return max(matching)[1:] if matching else None


def check_folder(root, folder, lines, used):
    broken = []
    named = set()
    for file in files_of(root / folder, COMPILED | {".S", ".def"}):
        name = file.relative_to(root / folder).as_posix()
        included = [path[len(folder) + 1:] for quote, path in includes_of(file)
                    if quote == '"' and path.startswith(folder + "/")]
        own = [other for other in included if re.sub(r"\.\w+$", "", other) == re.sub(r"\.\w+$", "", name)]
        lower = [(line_of(other, lines) or (-1,))[0] for other in included if other not in own]
        own_line = line_of(name, lines)
        if not own_line:
            line = max(lower, default=-1) + 2
            hint = f"; it can go on line {line} of {folder}, or a later one" if -1 not in lower else ""
            broken.append(f"{folder}/{name} is on no line of ORDER{hint}")
            continue
        named.add(own_line[1])
        for other in included:
            below = line_of(other, lines)
            # A header may stand below its source, not above.
            if not below or below[0] < own_line[0] or (other in own and below[0] == own_line[0]):
                continue
            if (f"{folder}/{name}", f"{folder}/{other}") in UPWARD:
                used.add((f"{folder}/{name}", f"{folder}/{other}"))
                continue
            broken.append(f"{folder}/{name} includes {folder}/{other}, which does not stand below it")
    return broken + [f"ORDER names {folder}/{entry}, which is not there" for line in lines for entry in line.split()
                     if entry not in named]


def check(root):
    used = set()
    broken = [line for folder, lines in ORDER.items() for line in check_folder(root, folder, lines, used)]
    broken += [f"{file} no longer includes {other}: take that off UPWARD" for file, other in UPWARD
               if (file, other) not in used]
    return broken, f"{len(ORDER)} folders, {len(broken)} against the order, {len(UPWARD)} excepted", ORDER


if __name__ == "__main__":
    run(check)
