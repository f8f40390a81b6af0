#!/usr/bin/env python3
"""Files over 400 lines and functions over 80 need a written reason here; a reason that is no longer needed has to go.

Lines are counted as clang-format leaves them; a function's are those from the opening to the closing line of its body.
"""
import ast
import re

from frame import COMPILED, run

MOST_FILE_LINES = 400
MOST_FUNCTION_LINES = 80
FOLDERS = ("api", "base", "profiler", "algorithms", "tuning", "interpose", "tools", "tests", "examples", "include")

FILES = {
    "algorithms/allreduce/arrival_leader.cpp": "one algorithm is one file: three ways to deposit share a layout",
    "algorithms/alltoall/arrival_alltoall.cpp": "one algorithm is one file: equal and unequal blocks share the slots",
    "algorithms/transport/ucx/ucx_plugin.cpp": "all that is linked to UCX, behind the functions of one table",
    "profiler/analysis/call_stream.cpp": "one reading: its cursors, open calls and members share their state",
    "profiler/analysis/compare.cpp": "one calculation: the intervals, the runs' differences and their classes",
    "profiler/record/format.hpp": "one file format: every field of the record where the others are",
    "tests/cluster/box": "one command: namespaces, the network between them, clocks and launchers",
    "tests/mpi/collectives.cpp": "one program, so that one launch runs all its checks",
    "tests/preload/nonblocking.c": "one program, so that one launch runs all its checks",
    "tests/protocol/ahead.cpp": "one subject: a case for each way in which ranks run ahead",
    "tests/report/run.py": "what is looked at in one browser, view by view",
    "tests/unit/report_figures.cpp": "a case for each figure of the report, over runs that they share",
    "tuning/tuning_file.cpp": "one reader: every field of a rule, and what may be wrong with it",
    "tools/bench/measure.cpp": "one measurement: rounds, arrivals, checks of the results and their reduction",
    "tools/otf2.cpp": "one output: definitions and events of one archive",
    "tools/trace.cpp": "one command: the calls of a run as a table, a timeline and an archive, gathered once",
    "tools/simulate": "one command: its runs, its tables and its picture",
}
FUNCTIONS = {
    "algorithms/alltoall/arrival_alltoall.cpp: exchange_blocks": "one loop over the parts, whose steps share its state",
    "interpose/mpi_types.cpp: Types": "a table",
    "profiler/analysis/compare.cpp: compare": "fills one result, field by field",
    "profiler/report/lateness.cpp: Judge::late_verdict": "one sentence, clause by clause",
    "tests/mpi/allreduce.cpp: user_operations": "a block for each operation that a user may define",
    "tests/mpi/small_calls.hpp: small_call": "a case for each collective",
    "tests/preload/cases/doctor.py: test_doctor": "one run of the command, every line of what it prints",
    'tests/protocol/ahead.cpp: TEST_CASE('
    '"what early leavers deposit keeps nobody from memory, and they wait for none")':
        "one schedule, step by step",
    "tools/bench/options.cpp: add_options": "a table: one option after the other",
    "tools/simulation/main.cpp: run_size": "one measurement, from its barrier to its row",
}

# Comments, strings, characters: nothing in them is a brace. Line ends stay.
OPAQUE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
                    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.DOTALL)


def without_opaque(text):
    text = OPAQUE.sub(lambda match: '""' + "\n" * match[0].count("\n"), text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda match: "\n" * match[0].count("\n"), text, flags=re.MULTILINE)


def end_of_braces(text, begin):
    depth = 0
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise ValueError("braces do not match")


def compiled_functions(text):
    """(name, lines) of each function body; what a class or a namespace holds counts, what a function holds does not."""
    lines = text.splitlines()
    text = without_opaque(text)
    at = head = parentheses = 0
    while at < len(text):
        here = text[at]
        if here in "()":
            parentheses += 1 if here == "(" else -1
        elif here == "{":
            before = text[head:at]
            end = end_of_braces(text, at)
            signature = re.search(r"([\w~:]+|operator\s*\S+|\boperator\s*\(\))\s*\(", before)
            is_initializer = (parentheses > 0 or re.search(r"(?<![=!<>])=(?!=)\s*(?:[\w:<>, ]*)$", before)
                              or (re.search(r"\)[\w\s]*:[^:]", before) and re.search(r"[\w>]$", before)))
            if is_initializer:
                at = end
            elif re.search(r"\b(namespace|extern|class|struct|union)\b(?!.*\))", before, re.DOTALL):
                head = at + 1
            elif signature and not re.search(r"(?<![=!<>])=(?!=)(?!.*\boperator)[^()]*\[", before, re.DOTALL):
                name = signature[1]
                if name == "TEST_CASE":
                    begin = text.count("\n", 0, head + before.index(name))
                    name += "(" + re.search(r'"[^"]*"', "\n".join(lines[begin:]))[0] + ")"
                yield name, text.count("\n", at, end) + 1
                at, head = end, end + 1
            else:  # an enumeration, a table, a lambda that is a constant
                at = end
        elif here in ";}" and parentheses == 0:
            head = at + 1
        at += 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.end_lineno - node.lineno + 1


def sources(root):
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if not file.is_file() or "__pycache__" in file.parts:
                continue
            if file.suffix in COMPILED:
                yield file, compiled_functions
            elif file.suffix == ".py" or file.read_bytes().startswith(b"#!/usr/bin/env python3\n"):
                yield file, python_functions
            elif file.suffix in (".sh", ".js", ".html", ".css", ".S", ".bash", ".def") or not file.suffix:
                yield file, lambda text: ()


def check(root):
    long_files, long_functions, functions = {}, {}, 0
    for file, functions_of in sources(root):
        path = file.relative_to(root).as_posix()
        text = file.read_text(encoding="utf-8")
        if text.count("\n") > MOST_FILE_LINES:
            long_files[path] = text.count("\n")
        for name, lines in functions_of(text):
            functions += 1
            if lines > MOST_FUNCTION_LINES:
                long_functions[f"{path}: {name}"] = lines
    broken = []
    for found, listed, most, what in ((long_files, FILES, MOST_FILE_LINES, "file"),
                                      (long_functions, FUNCTIONS, MOST_FUNCTION_LINES, "function")):
        broken += [f"{name} has {found[name]} lines, over {most}: split the {what}, or give a reason in sizes.py"
                   for name in sorted(set(found) - set(listed))]
        broken += [f"{name} has at most {most} lines or is gone: take it off the list in sizes.py"
                   for name in sorted(set(listed) - set(found))]
    return broken, (f"{functions} functions; {len(long_files)} files over {MOST_FILE_LINES} lines, "
                    f"{len(long_functions)} functions over {MOST_FUNCTION_LINES}"), functions


if __name__ == "__main__":
    run(check)
