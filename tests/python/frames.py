#!/usr/bin/env python3
"""Frames read without the interpreter's lock are those that Python itself tells.

  frames.py LIBRARY            in every Python that is here
  frames.py LIBRARY --here     in this one; exit code 77 if papaya does not know its version
"""

import ctypes
import shutil
import subprocess
import sys
import threading


def of_python(frame):
    """What the library should say."""
    while frame is not None:
        code = frame.f_code
        yield f"{getattr(code, 'co_qualname', code.co_name)} {code.co_filename} {frame.f_lineno}"
        frame = frame.f_back


class Class:
    def method(self, read):
        def inner():
            return list(read() for _ in range(1))[0]
        return inner()


def test_here(path):
    locked, unlocked = ctypes.PyDLL(path), ctypes.CDLL(path)
    unlocked.read_frames.restype = ctypes.c_char_p
    assert unlocked.open_frames() == 0, "opened without the lock"
    if locked.open_frames() == 0:
        return 77
    results = []

    def größe(most=64):
        # On one line: both are read there.
        def read(): return unlocked.read_frames(most).decode().splitlines(), list(of_python(sys._getframe()))[:most]
        results.append(Class().method(read))
        results.append(read())

    def busy():
        while not done.is_set():
            sys._current_frames()  # makes objects of frames, of all threads

    done = threading.Event()
    others = [threading.Thread(target=busy) for _ in range(2)]
    for other in others:
        other.start()
    for most in (64, 2, 1):
        for _ in range(5):
            thread = threading.Thread(target=größe, args=(most,))
            thread.start()
            thread.join()
    größe()
    done.set()
    for other in others:
        other.join()
    for read, expected in results:
        assert read == expected, (read, expected)
    assert len(results) == 32 and any("größe" in line for line in results[0][0]), results[0]
    return 0


def main():
    path = sys.argv[1]
    if "--here" in sys.argv:
        return test_here(path)
    codes = {}
    for python in dict.fromkeys([sys.executable, "/usr/bin/python3", *(f"python3.{n}" for n in range(8, 20))]):
        empty = [python, "-c", ""]
        if shutil.which(python) and subprocess.run(empty, stderr=subprocess.DEVNULL, check=False).returncode == 0:
            codes[python] = subprocess.run([python, __file__, path, "--here"], check=False).returncode
            print(f"{python}: {codes[python]}")
    if set(codes.values()) - {0, 77}:
        return 1
    return 0 if 0 in codes.values() else 77


if __name__ == "__main__":
    sys.exit(main())
