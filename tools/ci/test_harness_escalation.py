#!/usr/bin/env python3
"""Tests `premath escalate`: which issue it hands up, and what it does to it."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOUND = shutil.which("premath")
CARGO = ["cargo", "run", "--locked", "--quiet", "--manifest-path", str(ROOT / "Cargo.toml")]
PREMATH = [FOUND] if FOUND else [*CARGO, "--bin", "premath", "--"]


class Escalation(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.issues = self.folder / ".premath/issues.jsonl"
        self.issues.parent.mkdir()

    def file(self, *ids):
        rows = [{"id": name, "title": f"issue {name}", "status": "open"} for name in ids]
        self.issues.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def premath(self, *arguments, **variables):
        left_out = ("PREMATH_STEP_ID", "PREMATH_ISSUE_ID", "PREMATH_ACTIVE_ISSUE_ID")
        environment = {key: text for key, text in os.environ.items() if key not in left_out}
        ended = subprocess.run(
            [*PREMATH, *arguments, "--json"],
            cwd=self.folder,
            env={**environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.returncode, json.loads(ended.stdout)

    def escalate(self, name, **variables):
        reason = ("--override-reason", "test")
        return self.premath("escalate", "--class", name, *reason, **variables)

    def status(self, name):
        rows = [json.loads(line) for line in self.issues.read_text().splitlines() if line]
        return [row["status"] for row in rows if row["id"] == name][-1]

    def test_the_variables_name_the_issue_before_the_session(self):
        self.file("a", "b", "c")
        self.premath("harness-session", "write", "--issue-id", "c")
        code, answer = self.escalate("check_failed", PREMATH_ISSUE_ID="b")
        self.assertEqual((code, answer["context"]["issueId"]), (0, "b"))
        self.assertEqual(self.status("b"), "blocked")
        code, answer = self.escalate("check_failed")
        self.assertEqual((code, answer["context"]["issueId"]), (0, "c"))

    def test_the_only_ready_issue_is_the_last_source(self):
        self.file("a")
        code, answer = self.escalate("check_failed")
        self.assertEqual((code, answer["context"]["issueId"]), (0, "a"))
        self.assertEqual(self.status("a"), "blocked")

    def test_two_ready_issues_are_ambiguous_and_none_is_changed(self):
        self.file("a", "b")
        before = self.issues.read_bytes()
        code, answer = self.escalate("check_failed")
        self.assertEqual(code, 1)
        self.assertEqual(answer["failureClasses"], ["escalation_issue_context_ambiguous"])
        self.assertEqual(self.issues.read_bytes(), before)

    def test_without_an_issue_the_context_is_unbound(self):
        self.file()
        code, answer = self.escalate("check_failed")
        self.assertEqual(code, 1)
        self.assertEqual(answer["failureClasses"], ["escalation_issue_context_unbound"])

    def test_a_follow_up_is_filed_where_the_rule_says_so(self):
        self.file("a")
        code, answer = self.escalate("gate_timeout", PREMATH_ISSUE_ID="a")
        self.assertEqual(code, 0)
        self.assertEqual(self.status(answer["filedIssueId"]), "open")


if __name__ == "__main__":
    unittest.main()
