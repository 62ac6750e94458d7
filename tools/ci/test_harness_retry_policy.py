#!/usr/bin/env python3
"""Tests the embedded retry policy through `premath retry decide`."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
POLICY = ROOT / "shared/kernel/src/policy/retry_policy_default.json"
FOUND = shutil.which("premath")
CARGO = ["cargo", "run", "--locked", "--quiet", "--manifest-path", str(ROOT / "Cargo.toml")]
PREMATH = [FOUND] if FOUND else [*CARGO, "--bin", "premath", "--"]


def decide(*arguments, policy=None):
    """Returns the exit code and the answer to a failure, in an empty folder."""
    given = ["--policy", str(policy)] if policy else []
    command = [*PREMATH, "retry", "decide", *arguments, *given, "--json"]
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return ended.returncode, json.loads(ended.stdout)


class RetryPolicy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.policy = json.loads(POLICY.read_text())

    def test_the_embedded_policy_is_the_one_of_the_file(self):
        _, answer = decide("--class", "check_failed")
        self.assertIsNone(answer["policyPath"])
        self.assertEqual(answer["policyDigest"], self.policy["policyDigest"])

    def test_each_rule_decides_for_its_classes(self):
        for rule in self.policy["rules"]:
            # One class of a rule stands for the others: they are a set.
            for name in (rule["failureClasses"][0], rule["failureClasses"][-1]):
                with self.subTest(name=name):
                    last = rule["maxAttempts"]
                    _, answer = decide("--class", name, "--attempt", str(last))
                    retry = answer["retry"]
                    self.assertEqual(retry["ruleId"], rule["ruleId"])
                    self.assertEqual(retry["maxAttempts"], last)
                    self.assertEqual(retry["action"], rule["escalationAction"])

    def test_a_class_is_in_one_rule(self):
        names = [name for rule in self.policy["rules"] for name in rule["failureClasses"]]
        self.assertEqual(len(names), len(set(names)))

    def test_an_attempt_that_is_left_is_a_retry(self):
        _, answer = decide("--class", "gate_timeout", "--attempt", "1")
        self.assertEqual(answer["retry"]["decision"], "retry")
        self.assertEqual(answer["retry"]["backoffClass"], "exponential_short")

    def test_an_unknown_class_falls_to_the_default_rule(self):
        _, answer = decide("--class", "no_such_class")
        self.assertEqual(answer["retry"]["ruleId"], "default")
        rule = self.policy["defaultRule"]
        self.assertEqual(answer["retry"]["action"], rule["escalationAction"])

    def test_a_policy_with_another_digest_is_refused(self):
        self.policy["defaultRule"]["maxAttempts"] = 9
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "policy.json"
            path.write_text(json.dumps(self.policy))
            code, _ = decide("--class", "check_failed", policy=path)
        self.assertNotEqual(code, 0)


if __name__ == "__main__":
    os.environ.pop("PREMATH_STEP_ID", None)
    unittest.main()
