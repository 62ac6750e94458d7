#!/usr/bin/env python3
"""Runs `harness-worker` or `harness-coordinator` with the same arguments."""

import os
import shutil
import sys
from pathlib import Path

binaries = {"worker": "harness-worker", "coordinator": "harness-coordinator"}
usage = "usage: multithread_loop.py worker|coordinator [ARGUMENTS]"
if len(sys.argv) > 1 and sys.argv[1] in ("-h", "--help"):
    print(f"{usage}\n\n{__doc__}\nThe arguments: multithread_loop.py worker --help")
    sys.exit(0)
if len(sys.argv) < 2 or sys.argv[1] not in binaries:
    print(usage, file=sys.stderr)
    sys.exit(2)
name, arguments = binaries[sys.argv[1]], sys.argv[2:]
found = shutil.which(name)
manifest = str(Path(__file__).resolve().parents[2] / "Cargo.toml")
cargo = ["cargo", "run", "--locked", "--quiet", "--manifest-path", manifest, "--bin", name, "--"]
command = [found] if found else cargo
try:
    os.execvp(command[0], command + arguments)
except OSError as error:
    sys.exit(f"error: cannot run {command[0]}: {error.strerror}")
