//! Any bytes are an event stream of OpenCode, good or bad.

#![no_main]

mod stream;

use libfuzzer_sys::fuzz_target;
use premath_evidence::Agent;

fuzz_target!(|bytes: &[u8]| stream::holds(Agent::OpenCode, bytes));
