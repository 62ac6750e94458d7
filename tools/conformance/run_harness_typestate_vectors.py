#!/usr/bin/env python3
"""Runs `premath conformance run` with the same arguments."""

import os
import shutil
import sys
from pathlib import Path

name, arguments = "premath", ["conformance", "run", *sys.argv[1:]]
found = shutil.which(name)
manifest = str(Path(__file__).resolve().parents[2] / "Cargo.toml")
cargo = ["cargo", "run", "--locked", "--quiet", "--manifest-path", manifest, "--bin", name, "--"]
command = [found] if found else cargo
try:
    os.execvp(command[0], command + arguments)
except OSError as error:
    sys.exit(f"error: cannot run {command[0]}: {error.strerror}")
