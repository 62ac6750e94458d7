//! Records: what a batch writes down. The trajectory, sessions and features,
//! witnesses, crossings between worlds, and the stream of events.

pub mod audit;
pub mod bootstrap;
pub mod boundary;
pub mod change_witness;
pub mod control;
pub mod event;
pub mod feature;
pub mod live;
pub mod log;
pub mod notification;
pub mod observation;
pub mod own_checks;
pub mod plan;
pub mod recorded_turn;
pub mod salvage;
pub mod sandbox_profile;
pub mod session;
pub mod timed_call;
pub mod trailers;
pub mod trajectory;
pub mod turn_context;
pub mod why;
pub mod witness;
pub mod world;
