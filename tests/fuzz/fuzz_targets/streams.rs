//! Any bytes are an event stream of any agent, good or bad.

#![no_main]

mod stream;

use libfuzzer_sys::fuzz_target;
use premath_evidence::Agent;

fuzz_target!(|bytes: &[u8]| {
    for agent in Agent::ALL {
        stream::holds(*agent, bytes);
    }
});
