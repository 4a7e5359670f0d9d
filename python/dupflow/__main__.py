"""The command line: `python -m dupflow` and the console script `dupflow`."""

import signal
import sys

from . import _dupflow


def main() -> int:
    """Runs the command line with the arguments of this process. Returns its exit code."""
    # Python turns SIGINT into an exception of its own threads, which would wait for the command to return.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _dupflow.main(["dupflow", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
