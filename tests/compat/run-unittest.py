"""Runs one module or class of CPython's tests and writes a line for each test into the file that RECORDS names.

Written as tests end, so that a module that hangs or dies still tells what it did.
"""
import fnmatch
import os
import sys
import unittest

from test import support

unit = sys.argv[1]
records = open(os.environ["RECORDS"], "a", buffering=1, encoding="utf-8", errors="replace")
owner = os.getpid()


left_out = [pattern for pattern in os.environ.get("LEFT_OUT", "").split(":") if pattern]


def name_of(test):
    return test.id().removeprefix("test.")


def write(word, test):
    # A test may fork, and its child return to here.
    if os.getpid() == owner:
        name = " ".join(name_of(test).removeprefix(unit + ".").split())
        records.write(f"{word} {name}\n")


def without(suite):
    """The tests that are to run; a suite of the module's own making keeps its order and its kind."""
    kept = []
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            kept.append(without(test))
        elif not any(fnmatch.fnmatchcase(name_of(test), pattern) for pattern in left_out):
            kept.append(test)
    return type(suite)(kept)


class Result(unittest.TextTestResult):
    def addSuccess(self, test):
        super().addSuccess(test)
        write("passed", test)

    def addError(self, test, error):
        super().addError(test, error)
        write("failed", test)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        write("failed", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        write("skipped", test)

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        write("skipped", test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        write("failed", test)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            write("failed", test)


# No network, no large files, no sound.
support.use_resources = []
support.verbose = False
if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromName("test." + unit)
    unittest.TextTestRunner(verbosity=2, resultclass=Result).run(without(suite))
