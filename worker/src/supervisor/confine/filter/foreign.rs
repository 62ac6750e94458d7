//! The second set of system calls of `x86_64` kernels, x32: the same calls by
//! other numbers, which no rule for a number fits.

use super::NOT_PERMITTED;
use seccompiler::{BpfProgram, sock_filter};

/// `__X32_SYSCALL_BIT`: every number of x32 has it, and no other.
const X32: u32 = 0x4000_0000;

/// `BPF_LD | BPF_W | BPF_ABS`: loads a word of the call; its number is the
/// first.
const LOAD: u16 = 0x20;
/// `BPF_JMP | BPF_JSET | BPF_K`: skips by whether a bit is set.
const IF_SET: u16 = 0x45;
/// `BPF_RET | BPF_K`.
const RETURN: u16 = 0x06;

/// `SECCOMP_RET_ERRNO` with no number yet.
const ERRNO: u32 = 0x0005_0000;
/// `SECCOMP_RET_ALLOW`.
const ALLOW: u32 = 0x7fff_0000;

/// Returns a filter that refuses every call of x32. The compiler of the others
/// knows single numbers alone.
pub(super) fn program() -> BpfProgram {
    let step = |code, jt, k| sock_filter { code, jt, jf: 0, k };
    vec![
        step(LOAD, 0, 0),
        step(IF_SET, 1, X32),
        step(RETURN, 0, ALLOW),
        step(RETURN, 0, ERRNO | NOT_PERMITTED),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers a call as the kernel does (seccomp(2)).
    fn answer(number: u32) -> u32 {
        let program = program();
        let (mut at, mut loaded) = (0, 0);
        loop {
            let step = &program[at];
            at += 1;
            match (step.code, step.k) {
                (LOAD, 0) => loaded = number,
                (IF_SET, bit) if loaded & bit != 0 => at += usize::from(step.jt),
                (IF_SET, _) => at += usize::from(step.jf),
                (RETURN, answer) => return answer,
                step => panic!("{step:?}"),
            }
        }
    }

    #[test]
    fn numbers_of_x32_alone_are_refused() {
        for number in [0, 41, 56, 335, 452, 547] {
            assert_eq!(answer(number), ALLOW, "{number}");
            assert_eq!(answer(X32 | number), ERRNO | 1, "{number}");
        }
    }
}
