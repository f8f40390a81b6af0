"""Runs what an experiment consists of, each in its time."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PAPAYA_PROFILE": "off"}
LONGEST, SLACK_S = 6, 60  # times its weight, and seconds more: then a run is ended
GRACE = 5  # seconds that a run has to end when it is asked to
ENDING = 10  # seconds from the result until a run is ended that may not end


def sentence_of(output):
    """What the program says that failed, which is not the last that is said: launchers go on to talk."""
    lines = [line for line in output.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith(("papaya", "simulate:", "run.py:"))]
    return own[-1] if own else lines[-1] if lines else "no message"


def measure(run, runs, build, root):
    """Why it could not be run, or nothing; then `runs` has NAME.json."""
    if run.needs and shutil.which(run.needs) is None:
        return f"{run.needs} is not installed"
    file, folder = runs / f"{run.name}.json", runs / run.name
    partial = file.with_suffix(".partial")
    places = {"{json}": partial, "{folder}": folder, "{build}": build, "{root}": root}
    command = list(run.command)
    for word, place in places.items():
        command = [one.replace(word, str(place)) for one in command]
    shutil.rmtree(folder, ignore_errors=True)
    partial.unlink(missing_ok=True)
    limit = SLACK_S + LONGEST * run.weight
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said, tempfile.TemporaryFile("w+") as complaints:
        try:
            with subprocess.Popen(command, cwd=build, env={**os.environ, **ENVIRONMENT}, stdin=subprocess.DEVNULL,
                                  stdout=said, stderr=complaints, start_new_session=True) as process:
                try:
                    code = code_of(process, partial if not run.ends else None, limit)
                finally:
                    end_group(process)
        except OSError as error:
            return f"{command[0]}: {error.strerror}"
        said.seek(0)
        complaints.seek(0)
        output, complaint = said.read(), complaints.read()
    if code is None:
        return f"it did not end within {limit:.0f} s"
    if code != 0:
        return f"it ended with {code}: {sentence_of(complaint + output)}"
    if not is_whole(partial):  # a run.py, which leaves a folder
        left = {one.name: json.loads(one.read_text(encoding="utf-8"))
                for one in folder.glob("*.json") if one.stat().st_size < 1 << 20}
        lines = [line for line in output.splitlines(keepends=True) if str(folder) not in line]
        partial.write_text(json.dumps({"output": "".join(lines), "files": left}), encoding="utf-8")
    if has_only_native(partial):
        return f"nothing but native was measured: {sentence_of(complaint)}"
    partial.rename(file)
    return ""


def is_whole(file):
    try:
        return bool(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False


def has_only_native(file):
    measured = json.loads(file.read_text(encoding="utf-8"))
    rows = measured.get("rows") if isinstance(measured, dict) else None
    return isinstance(rows, list) and all(row["algorithm"] == "native" for row in rows if isinstance(row, dict))


def code_of(process, partial, limit):
    """Its exit code, or None if it does not end in time. With `partial`, its result is all that it has to leave."""
    begin, seen = time.monotonic(), None
    while process.poll() is None and time.monotonic() < begin + limit:
        time.sleep(0.2)
        if partial is not None and seen is None and is_whole(partial):
            seen = time.monotonic()
        if seen is not None and time.monotonic() > seen + ENDING:
            return 0
    return process.returncode


def end_group(process):
    """Whatever it has started, too: a driver's launcher, the ranks of that."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        begin = time.monotonic()
        while process.poll() is None and time.monotonic() < begin + GRACE:
            time.sleep(0.05)
