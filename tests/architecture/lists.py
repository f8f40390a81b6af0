#!/usr/bin/env python3
"""Lists that people wrote down, against the one place that each comes from: lists.py SOURCE_FOLDER PAPAYA.

Variables, algorithms, subcommands and options are what the command itself prints; reasons, collectives and the fields
of what papaya writes are read from the sources.
"""
import json
import re
import subprocess

from frame import run

PLACEHOLDERS = {"PAPAYA_X"}  # for any of the collectives' variables
NOT_SETTINGS = {"PAPAYA_RUN_PID"}  # between `papaya run` and libpapaya.so


def differences(what, where, listed, wanted):
    """One sentence for each entry that is missing or too many; repeated entries are too many."""
    listed = list(listed)
    found = [f"{where} lacks {what} {name}" for name in wanted if name not in listed]
    found += [f"{where} has {what} {name}, which there is not" for name in sorted(set(listed)) if name not in wanted]
    return found + [f"{where} has {what} {name} twice" for name in sorted(set(listed)) if listed.count(name) > 1]


def lacking(where, page, fields):
    return [f"{where} lacks the field {field}" for field in sorted(fields) if not re.search(rf"\b{field}\b", page)]


def differing(what, where, listed, wanted):
    return [] if listed == wanted else [f"{where}: {what} is {listed!r}, not {wanted!r}"]


class Lists:
    def __init__(self, root, command):
        self.root, self.command = root, command

    def read(self, name):
        return (self.root / name).read_text(encoding="utf-8")

    def says(self, *arguments):
        return subprocess.run([self.command, *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout

    def manual(self, page):
        """A page of the manual without its escapes."""
        return self.read(f"docs/man/{page}.1").replace("\\-", "-").replace("\\(dq", '"')

    def section(self, page, title):
        return self.manual(page).split(f".SH {title}\n")[1].split("\n.SH ")[0]

    def entries(self, page, title):
        """The (heading, text) of each .TP, without fonts."""
        for entry in re.split(r"^\.TP\n", self.section(page, title), flags=re.MULTILINE)[1:]:
            heading, _, text = entry.partition("\n")
            yield re.sub(r"\\f[A-Z]", "", re.sub(r"^\.[BRI]+ ", "", heading)).replace('"', ""), text

    # The sources.

    def variables(self):
        """{name: (values, default)}"""
        rows = re.findall(r"^(PAPAYA_\w+) .*\n +values: (.*), default: (.*)$", self.says("info", "--env"), re.MULTILINE)
        return {name: (values, "" if default == "empty" else default) for name, values, default in rows}

    def algorithms(self):
        """{variable: {name: description}}"""
        found, of_one = {}, {}
        for line in self.says("info", "--algorithms").split("\nWeakly consistent")[0].splitlines():
            if heading := re.match(r"MPI_\w+ \((PAPAYA_\w+)\)", line):
                of_one = found.setdefault(heading[1], {})
            elif algorithm := re.match(r"  (\w+): ", line):
                of_one[algorithm[1]] = ""
            elif line.startswith("    ") and of_one:
                of_one[list(of_one)[-1]] += line.strip() + "\n"
        return found

    # CLI11 before 2.5: "Options:", "  -h,--help"; from then on "OPTIONS:", "  -h,     --help".
    def help_from(self, heading, *subcommand):
        return re.split(rf"^{heading}:\n", self.says(*subcommand, "--help"), flags=re.MULTILINE | re.IGNORECASE)[1]

    def subcommands(self):
        return re.findall(r"^  (\w+) ", self.help_from("subcommands"), re.MULTILINE)

    def options(self, *subcommand):
        lines = re.findall(r"^ {2,10}(-[\w-]+(?:, *-[\w-]+)*)", self.help_from("options", *subcommand), re.MULTILINE)
        return [option for line in lines for option in re.split(", *", line)]

    def rows(self, name, macro):
        return re.findall(rf'^{macro}\((\w+), "([^"]*)"', self.read(name), re.MULTILINE)

    # The lists.

    def check_variables(self):
        variables = self.variables()
        found = []
        written = {}
        for heading, text in self.entries("papaya", "ENVIRONMENT"):
            if heading.startswith("PAPAYA_"):
                for name in re.findall(r"PAPAYA_\w+", heading):
                    written.setdefault(name, []).append((heading, text))
        where = "docs/man/papaya.1"
        listed = [name for name, all_of in written.items() for _ in all_of]
        found += differences("the variable", where, listed, variables)
        for name, (values, default) in variables.items():
            for heading, text in written.get(name, []):
                stated = re.search(r"^Default: (\S*?)[.,;]?(\s|$)", text, re.MULTILINE)
                if default:
                    found += differing(f"the default of {name}", where, stated and stated[1], default)
                if "=" in heading and re.fullmatch(r"[a-z0-9]+(\|[a-z0-9]+)+", values):
                    found += differing(f"what {name} can be", where, heading.split("=")[1].replace(" ", ""), values)
        if (self.root / "docs/settings.md").exists():
            where = "docs/settings.md"
            table = [[cell.strip() for cell in row.strip("|").split("|")] for row in
                     re.findall(r"^\| `PAPAYA_\w+` .*\|$", self.read(where).split("\n## ")[0], re.MULTILINE)]
            found += differences("the variable", where, [row[0].strip("`") for row in table], variables)
            for name, values, default, *_ in table:
                wanted = variables.get(name.strip("`"))
                if wanted:
                    found += differing(f"the default of {name}", where, default, wanted[1] or "empty")
                    if re.fullmatch(r"[a-z0-9]+(\|[a-z0-9]+)+", wanted[0]):
                        found += differing(f"what {name} can be", where, values.replace(", ", "|"), wanted[0])
        return found

    def check_names_of_variables(self):
        """Wherever a page or an example names a variable, there is one."""
        known = set(self.variables()) | PLACEHOLDERS | NOT_SETTINGS
        for folder in ("base", "profiler", "algorithms", "tuning", "interpose", "include"):
            for file in sorted((self.root / folder).rglob("*.?pp")) + sorted((self.root / folder).rglob("*.h")):
                known |= set(re.findall(r"#\s*define (PAPAYA_\w+)", file.read_text(encoding="utf-8")))
        pages = [self.root / "README.md", self.root / "CHANGELOG.md", *self.root.glob("docs/**/*.md"),
                 *self.root.glob("docs/man/*.1"), *self.root.glob("examples/*"), *self.root.glob("tools/completion/*")]
        return [f"{page.relative_to(self.root)} names {name}, which there is not"
                for page in sorted(pages) if page.is_file()
                for name in sorted(set(re.findall(r"PAPAYA_[A-Z]\w*\b(?!_)", page.read_text(encoding="utf-8"))))
                if name not in known]

    def check_algorithms(self):
        algorithms = self.algorithms()
        found = []
        # A file with a descriptor is compiled, and called what its algorithm is called.
        for variable, names in algorithms.items():
            folder = variable.removeprefix("PAPAYA_").lower()
            files = [file.stem for file in (self.root / "algorithms" / folder).glob("*.cpp")
                     if re.search(r"^\s*\.name = ", file.read_text(encoding="utf-8"), re.MULTILINE)]
            if folder not in ("iallreduce", "ibcast", "ibarrier"):
                compiled = self.read(f"algorithms/{folder}/meson.build")
                for name in sorted(set(files) - set(names)):
                    file = f"algorithms/{folder}/{name}.cpp"
                    found.append(f"{file} is not in algorithms/{folder}/meson.build" if f"'{name}.cpp'" not in compiled
                                 else f"{file} gives its algorithm another name, or the command is older than it")
                found += [f"algorithms/{folder}/ lacks {name}.cpp" for name in names if name not in files]
        page = "docs/settings.md" if (self.root / "docs/settings.md").exists() else "README.md"
        listed, variable = {}, ""
        section = re.split(r"\n##+ .*(?:several|across) nodes\n", self.read(page))[1].split("\n#")[0]
        for first, second in re.findall(r"^\|([^|\n]*)\|([^|\n]*)\|[^|\n]*\|$", section, re.MULTILINE):
            variable = first.strip(" `") or variable
            listed.setdefault(variable, []).extend(re.findall(r"`([a-z_]+)`", second.split(":")[0]))
        for variable, names in algorithms.items():
            across = [name for name, text in names.items() if "ranks on one node" not in text]
            found += differences(f"across nodes for {variable}", page, listed.get(variable, []), across)
        # Those that nonblocking calls may have.
        text = "".join(text for heading, text in self.entries("papaya", "ENVIRONMENT")
                       if heading.startswith("PAPAYA_IALLREDUCE"))
        stated = re.search(r"split phase\s+\(([^)]*)\)", text)
        wanted = [[file.stem for file in sorted((self.root / "algorithms" / folder).glob("*.cpp"))
                   if ".split_phase = true" in file.read_text(encoding="utf-8")]
                  for folder in ("allreduce", "bcast", "barrier")]
        listed = [sorted(set(re.findall(r"\w+", part)) - {"and"}) for part in (stated[1] if stated else "").split(";")]
        return found + differing("who has a split phase", "docs/man/papaya.1", listed, wanted)

    def check_subcommands(self):
        subcommands = self.subcommands()
        pages = [file.stem.removeprefix("papaya-") for file in (self.root / "docs/man").glob("papaya-*.1")]
        installed = re.findall(r"'man/papaya-(\w+)\.1'", self.read("docs/meson.build"))
        parts = re.findall(r"^\.BR papaya-(\w+) \(1\)$", self.section("papaya", "DESCRIPTION"), re.MULTILINE)
        return (differences("the page", "docs/man", pages, subcommands)
                + differences("the page", "docs/meson.build", installed, subcommands)
                + differences("the subcommand", "docs/man/papaya.1", parts, subcommands))

    def check_options(self):
        found = []
        for subcommand in self.subcommands():
            if not (self.root / f"docs/man/papaya-{subcommand}.1").exists():
                continue  # check_subcommands says so
            headings = [heading for heading, _ in self.entries(f"papaya-{subcommand}", "OPTIONS")]
            listed = [option for heading in headings for option in re.findall(r"(?<![\w-])--?\w[\w-]*", heading)]
            wanted = self.options(subcommand)
            found += differences("the option", f"docs/man/papaya-{subcommand}.1", listed, wanted)
        return found

    def check_bench(self):
        """Patterns, modes and collectives of the benchmark, in its help, its manual and the completion."""
        patterns = re.findall(r'\{Pattern::\w+, "([a-z-]+)"', self.read("tools/bench/patterns.cpp"))
        completion = "tools/completion/papaya.bash"
        words = {option: offered.split() for option, offered in
                 re.findall(r"(--pattern|--mode|--mpi)\)\n.*?compgen -W \"([^\"]*)\"", self.read(completion))}
        texts = dict(self.entries("papaya-bench", "OPTIONS"))
        bench_help = re.sub(r"\s+", " ", self.says("bench", "--help"))
        modes = re.search(r" mode_names = \{(.*?)\};", self.read("tools/bench/options.cpp"), re.DOTALL)[1]
        modes = re.findall(r'"(\w+)"', modes)
        found = differences("the pattern", completion, [word.rstrip(":") for word in words["--pattern"]], patterns)
        found += differences("the mode", completion, words["--mode"], modes)
        stated = re.search(r"--mode MODE (.*?) --json", bench_help)[1]
        found += [f"papaya bench --help lacks the mode {mode}" for mode in modes
                  if not re.search(rf"\b{mode}\b", stated)]
        stated = re.search(r"--pattern PATTERN(?:=none| \[none\]) .*?: (.*?) --skew", bench_help)[1]
        stated = re.findall(r"[a-z-]+(?=,|$|:FILE)", stated)
        found += differences("the pattern", "papaya bench --help", stated, patterns)
        man = self.section("papaya-bench", "OPTIONS").split("--pattern")[1].split("--skew")[0]
        described = re.findall(r"(?<![\w-])([a-z]+(?:-[a-z]+)*)(?=[\s\",:]|$)",
                               " ".join(re.findall(r"^\.B[RI]* (.*)$", man, re.MULTILINE)), re.MULTILINE)
        found += differences("the pattern", "docs/man/papaya-bench.1", ["none", *described], patterns)
        mode_text = next(text for heading, text in texts.items() if heading.startswith("--mode"))
        stated = re.findall(r"^\.B (\w+)$", mode_text, re.MULTILINE)
        found += differences("the mode", "docs/man/papaya-bench.1", stated, modes)
        listed = re.search(r" replaceable = \{(.*?)\};(.*?)\};", self.read("tools/bench/operation.cpp"), re.DOTALL)
        replaceable, others = (re.findall(r"Collective::(\w+)", part) for part in listed.groups())
        found += differences("the collective", "tools/bench/operation.cpp", replaceable, [
            variable.removeprefix("PAPAYA_").lower() for variable in self.algorithms()
            if not variable.startswith("PAPAYA_I")])
        measured = [*replaceable, *others, *("i" + name for name in (*replaceable, *others))]
        offered = re.search(r'compgen -W "(allreduce [^"$]*)', self.read(completion))[1].split()
        return found + differences("the collective", completion, offered, [*measured, "all", "kernels"])

    def check_fields(self):
        """What the files hold that papaya writes for other programs."""
        found = []
        bench = self.read("tools/bench/output.cpp")
        keys = set(re.findall(r'\{"(\w+)", ', bench.split("json_text")[-1].split("csv_text")[0]))
        keys |= set(re.findall(r'out\["(\w+)"\]', bench + self.read("tools/bench/weak_output.cpp")))
        page = self.section("papaya-bench", "JSON")
        found += lacking("docs/man/papaya-bench.1, JSON,", page, keys)
        head = re.search(r'out << ("rank,node.*?);', self.read("tools/trace.cpp"), re.DOTALL)[1]
        columns = "".join(re.findall(r'"([^"\\]*)(?:\\n)?"', head))
        text = re.sub(r"\([^()]*\)", "", dict(self.entries("papaya-trace", "OPTIONS"))["--csv"]).replace("\n", " ")
        listed = re.findall(r"(\w+)\s*(?=,|\.\s*$)", text.split(": ", 1)[1])
        found += differences("the column", "docs/man/papaya-trace.1, --csv", listed, columns.split(","))
        json = "".join(self.read(source.relative_to(self.root)) for source in
                       (self.root / "profiler/report/json.cpp", *(self.root / "profiler/report/json").glob("*.cpp")))
        keys = set(re.findall(r'(?:[{[]|\blist\()"(\w+)"[],]', json))
        page = self.read("docs/trace_format.md").split("## report.json")[1].split("\n## ")[0]
        found += lacking("docs/trace_format.md, report.json,", page, keys)
        stated = {name for row in re.findall(r"^\| (?!field|---)([^|]*) \|", page, re.MULTILINE)
                  for name in re.findall(r"\w+", row.replace("[]", ""))}
        return found + [f"docs/trace_format.md, report.json, has the field {name}, which there is not"
                        for name in sorted(stated - keys)]

    def check_tuning_file(self):
        """What a tuning file may hold, in its schema and in its reader; what a user is told of it."""
        schema = json.loads(self.read("docs/tuning.schema.json"))
        rule, measured = schema["$defs"]["rule"]["properties"], schema["$defs"]["measured"]["properties"]
        reader = self.read("tuning/tuning_file.cpp")
        found = []
        for name, properties in (("file", schema["properties"]), ("rule", rule), ("measured", measured)):
            known = re.search(rf" {name}_fields = \{{(.*?)\}};", reader, re.DOTALL)[1]
            found += differences("the field", f"docs/tuning.schema.json, {name},", properties,
                                 re.findall(r'"([^"]+)"', known))
        classes = re.search(r" arrival_names = \{(.*?)\};", self.read("tuning/rule.hpp"), re.DOTALL)[1]
        found += differences("the arrivals", "docs/tuning.schema.json", rule["arrivals"]["enum"],
                             re.findall(r'"(\w+)"', classes))
        found += differences("the collective", "docs/tuning.schema.json", rule["collective"]["enum"],
                             [variable.removeprefix("PAPAYA_").lower() for variable in self.algorithms()])
        page = self.read("docs/settings.md").split("## Tuning files")[1].split("\n## ")[0]
        rows = " ".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE))
        return found + differences("the field of a rule", "docs/settings.md", re.findall(r"`(\w+)`", rows), rule)

    def check_tables(self):
        """The tables of report.txt, and the headings under which the manual explains them."""
        begin_of_table = r'(?:\bTable \w+\(|\bimbalance_table\(analysis,)\s*(?:fmt::format\(\s*)?'
        sources = sorted((self.root / "profiler/report/text").glob("*.cpp"))
        texts = [text for source in sources
                 for text in re.findall(begin_of_table + r'"([^"({,]*)', source.read_text(encoding="utf-8"))]
        titles = [text.strip() for text in texts if text.strip()]
        headings = [part for heading, _ in self.entries("papaya-report", "READING THE REPORT")
                    for part in heading.split(", ")]
        where = "docs/man/papaya-report.1, READING THE REPORT,"
        found = [f"{where} lacks the table {title}" for title in titles
                 if not any(title.startswith(heading) for heading in headings)]
        return found + [f"{where} has {heading}, which no table is called" for heading in headings
                        if heading not in ("Verdict", "Horovod")
                        and not any(title.startswith(heading) for title in titles)]

    def check_collectives(self):
        wanted = [name for _, name in self.rows("base/collectives.def", "PAPAYA_COLLECTIVE")]
        stated = re.search(r"in this order: ([^.]*)\.", self.read("docs/trace_format.md"))[1]
        return differing("the order of the collectives", "docs/trace_format.md", re.split(r",\s+", stated), wanted)

    def check_descriptor(self):
        """What docs/add_an_algorithm.md says of an algorithm's descriptor and of the object it prepares."""
        text = re.sub(r"//[^\n]*", "", self.read("algorithms/algorithm.hpp"))
        descriptor = re.search(r"^struct Descriptor \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL)[1]
        members = re.findall(r"(?:\(\*|\s)(\w+)(?:\)\([^;]*)?(?:\s=[^;]*)?;", descriptor)
        methods = re.findall(r"virtual [^;{]*?(\w+)\(", text)
        where = "docs/add_an_algorithm.md"
        page = self.read(where)
        tables = re.findall(r"^\| member \|.*\n((?:\|.*\n)+)", page, re.MULTILINE)
        listed = re.findall(r"`(\w+)`", " ".join(row.split("|")[1] for row in "".join(tables).splitlines()))
        explained = [name for name in members if name in listed or re.search(rf"^ *\.{name} = ", page, re.MULTILINE)]
        found = [f"{where} lacks the member {name} of Descriptor" for name in members if name not in explained]
        return found + [f"{where} has the member {name}, which there is not"
                        for name in listed if name not in members + methods]

    def check_reasons(self):
        """Every reason is given somewhere."""
        sources = "".join(file.read_text(encoding="utf-8") for folder in ("interpose", "tuning")
                          for file in sorted((self.root / folder).glob("*.?pp")))
        rows = self.rows("base/reasons.def", "PAPAYA_REASON")
        return [f"base/reasons.def has the reason {name}, which nothing gives" for name, _ in rows
                if name != "none" and not re.search(rf"\bReason::{name}\b", sources)]


def check(root, command):
    lists = Lists(root, command)
    checks = [name for name in dir(Lists) if name.startswith("check_")]
    found = [line for check in checks for line in getattr(lists, check)()]
    variables, algorithms = len(lists.variables()), sum(map(len, lists.algorithms().values()))
    return found, (f"{len(checks)} kinds of lists, {len(found)} differences; {variables} variables, "
                   f"{algorithms} algorithms"), variables and algorithms


if __name__ == "__main__":
    run(check)
