//! What a step that does its worst gains: nothing. Each attack that once
//! worked, and each principle of isolation, by the real harness, as an ordinary
//! user, in every mode of confinement.
//!
//! Each test has a hostile issue among honest ones. It asserts that the harm
//! was not done, and that the batch continued: the honest issues closed and
//! landed, also in the night after it, in the same lanes.
//!
//! | variable | what it does |
//! |---|---|
//! | `PREMATH_ESCAPE_MODE` | the modes to run, as in `namespaces,landlock`; one that is named and does not work fails |
//! | `PREMATH_TESTS_BINARIES` | a folder of other binaries to attack, as built from an older commit |
//! | `PREMATH_ESCAPE_SANDBOX` | what `--sandbox` takes in every mode: for older binaries, which know neither the modes nor `[limits]`, as in `landlock` |
//! | `PREMATH_TESTS=long` | the property over 2,000 hostile steps |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests: what is not there fails the test that asked for it"
)]

/// Makes a test of each attack in each mode.
macro_rules! attacks {
    ($($name:ident),+ $(,)?) => {
        attacks! { @mode namespaces Namespaces $($name)+ }
        attacks! { @mode landlock Landlock $($name)+ }
        attacks! { @mode container Container $($name)+ }
    };
    (@mode $module:ident $mode:ident $($name:ident)+) => {
        mod $module {
            $(
                #[test]
                fn $name() {
                    let attack = concat!(module_path!(), "::", stringify!($name));
                    crate::ground::run(crate::ground::Mode::$mode, attack, super::$name);
                }
            )+
        }
    };
}

mod channels;
mod devices;
mod evasion;
mod forgery;
mod governance;
mod ground;
mod home;
mod hooks;
mod links;
mod objects;
mod principles;
mod processes;
mod property;
mod record;
mod refs;
mod remote;
mod resources;
mod rights;
mod shapes;
mod tamper;
mod tools;
mod verification;
