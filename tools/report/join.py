#!/usr/bin/env python3
"""join.py OUTPUT [PAGE STYLE CHART SCRIPT...]: the page of `papaya report --html` as a C++ string, all but the run's
data; an empty one without the files. The scripts share one scope, in the order given."""
import pathlib
import sys

LITERAL = 8000  # characters; compilers need not take longer ones


def read(path):
    part = pathlib.Path(path).read_text(encoding="utf-8")
    if "</script" in part.lower() or "</style" in part.lower():
        sys.exit(f"{path}: would end the element it is put into")
    return part


def joined(page, style, chart, *scripts):
    text = pathlib.Path(page).read_text(encoding="utf-8")
    for name, paths in {"style": [style], "chart": [chart], "script": scripts}.items():
        part = "\n".join(read(path) for path in paths)
        mark = f"/*papaya:{name}*/"
        if text.count(mark) != 1:
            sys.exit(f"{page}: needs {mark} once")
        text = text.replace(mark, part)
    return text


def main(output, *files):
    text = joined(*files) if files else ""
    with open(output, "w", encoding="utf-8") as file:
        file.write("namespace papaya {\n\nextern const char* const report_page_template;\n"
                   "const char* const report_page_template =\n")
        for begin in range(0, max(1, len(text)), LITERAL):
            file.write(f'R"papaya({text[begin:begin + LITERAL]})papaya"\n')
        file.write(";\n\n}  // namespace papaya\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
