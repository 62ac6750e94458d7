//! Tests of the runner by small suites with one thing wrong, and the shipped suite.

mod faults;
mod manifest;
mod shipped;
mod slices;
mod small;
mod vectors;
