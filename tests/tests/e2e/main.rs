//! The binaries from end to end, on real repositories with scripted agents.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests: what is not there fails the test that asked for it"
)]

mod agents;
mod audit;
mod batched;
mod boots;
mod checks;
mod commands;
mod confinement;
mod container;
mod control;
mod counted_night;
mod doctor;
mod evidence_file;
mod example;
mod filters;
mod first_batch;
mod flaky;
mod gate;
mod governance;
mod hooks;
mod hooks_attacked;
mod hooks_projects;
mod hostile;
mod instruction;
mod interrupts;
mod landing;
mod landing_settings;
mod lanes;
mod live_view;
mod mcp;
mod metrics;
mod misbehaviour;
mod mise;
mod namespace;
mod night;
mod notify;
mod observe;
mod otlp;
mod output;
mod own;
mod own_checks;
mod own_files;
mod plan;
mod queue;
mod queue_campaign;
mod race;
mod recovery;
mod refusals;
mod remote;
mod repair;
mod report;
mod resumed_by_hand;
mod review;
mod rights;
mod sandbox;
mod say;
mod schemas;
mod second_night;
mod serve;
mod serve_browser;
mod serve_tls;
mod service;
mod shims;
mod sign_in;
mod simulated_night;
mod slots;
mod status;
mod steps;
mod stopped;
mod submodules;
mod systemd;
mod together;
mod tracker;
mod trial;
mod trust;
mod turn_demands;
mod uninstall;
mod upkeep;
mod warm;
mod watching;
mod worlds;
