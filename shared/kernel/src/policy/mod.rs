//! Policies: what a batch does about failures, limits and providers, how its
//! commands are confined, and how its work lands.

pub mod admission;
pub mod breaker;
pub mod budget;
pub mod deadline;
pub mod escalation;
pub mod exit;
pub mod governing;
pub mod health;
pub mod inventory;
pub mod landing;
pub mod landing_queue;
pub mod network;
pub mod program;
pub mod provider;
pub mod repair;
pub mod retry;
pub mod room;
pub mod sandbox;
pub mod silence;
pub mod slots;
pub mod target_sync;
pub mod trust;
pub mod turn;
pub mod until;
pub mod usage;
pub mod verified_states;
pub mod window;
