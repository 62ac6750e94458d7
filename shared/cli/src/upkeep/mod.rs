//! `premath doctor` and `premath clean`: whether what the harness has in a
//! repository is accounted for, and what nothing needs any more.

mod clean;
mod doctor;
mod survey;

pub(crate) use clean::{CleanAnswer, CleanArgs};
pub(crate) use doctor::{DoctorAnswer, DoctorArgs};
