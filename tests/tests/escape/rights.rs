//! Rights that a step gives to files: others could run its programs as the
//! user, or write where the next step works.

use crate::ground::Ground;
use std::fs;
use std::os::unix::fs::PermissionsExt;

attacks! {
    a_program_that_runs_as_its_owner_is_not_made,
    a_call_has_no_second_number,
    a_folder_that_others_write_to_does_not_stay,
    mounts_give_no_rights,
}

fn a_program_that_runs_as_its_owner_is_not_made(ground: &mut Ground) {
    let script = r#"cp /bin/true src/a.bin; chmod 4755 src/a.bin; chmod 2755 src/a.bin; chmod u+s,g+s src/a.bin
python3 - <<'END'
import ctypes, os, struct
libc = ctypes.CDLL(None)
def ways():
    for mode in (0o4755, 0o2755, 0o6755):
        name = "src/%o" % mode
        yield lambda: os.close(os.open(name + "open", os.O_CREAT | os.O_WRONLY, mode))
        yield lambda: os.mknod(name + "mknod", 0o100000 | mode)
        yield lambda: libc.creat((name + "creat").encode(), mode)
        yield lambda: os.fchmod(os.open("src/a.bin", os.O_RDONLY), mode)
        yield lambda: libc.syscall(452, -100, b"src/a.bin", mode, 0)
        yield lambda: libc.syscall(437, -100, (name + "open2").encode(), struct.pack("QQQ", 0o101, mode, 0), 24)
        fd = []
        yield lambda: fd.append(os.open("src", os.O_TMPFILE | os.O_WRONLY, mode))
        yield lambda: os.link("/proc/self/fd/%d" % fd[0], name + "tmpfile", follow_symlinks=True)
for number, way in enumerate(ways()):
    try: way()
    except OSError as error: print(number, error)
    except IndexError: pass
END
find . "$TMPDIR" -type f -perm /6000 2>/dev/null | sed 's/^/made: /'
rm -f src/a.bin src/*755*; :"#;
    ground.hostile("h", script);
    ground.nights();
    let said = ground.output("h");
    let made: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("made:"))
        .collect();
    ground.harm(!made.is_empty(), format!("{made:?}"));
}

/// x32 has the calls of `x86_64` by other numbers: `getpid`, `socket`, `clone`,
/// `chmod`, `unshare`. Kernels without x32 answer with another error.
fn a_call_has_no_second_number(ground: &mut Ground) {
    let script = r#"python3 - <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for number in (39, 41, 56, 90, 272) if os.uname().machine == "x86_64" else ():
    ctypes.set_errno(0)
    result = libc.syscall(0x40000000 | number, 0, 0, 0, 0, 0)
    if (result, ctypes.get_errno()) != (-1, 1):
        print("answered:", number, result, ctypes.get_errno())
print("all tried")
END
:"#;
    ground.hostile("h", script);
    ground.nights();
    let said = ground.output("h");
    let answered: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("answered:"))
        .collect();
    ground.harm(!answered.is_empty(), format!("{answered:?}"));
    ground.harm(!said.contains("all tried"), said);
}

/// Also in the hands of a later step, which the second night is.
fn a_folder_that_others_write_to_does_not_stay(ground: &mut Ground) {
    for (id, mode) in [("h", "2777"), ("i", "1777"), ("j", "0777")] {
        ground.hostile(
            id,
            &format!("chmod {mode} . src; echo 'mode of .:' $(stat -c %a .)"),
        );
    }
    ground.nights();
    let lanes = fs::read_dir(ground.path("repo-lanes"))
        .into_iter()
        .flatten();
    let mut seen = 0;
    for lane in lanes
        .flatten()
        .filter(|lane| lane.path().join(".git").exists())
    {
        seen += 1;
        let mode = lane.metadata().unwrap().permissions().mode();
        let at = lane.path().display().to_string();
        ground.harm(mode & 0o7022 != 0, format!("{at} has mode {mode:o}"));
    }
    ground.harm(seen == 0, "no lane was looked at");
}

fn mounts_give_no_rights(ground: &mut Ground) {
    if ground.mode() == crate::ground::Mode::Landlock {
        return;
    }
    let script = r#"while read -r _ _ _ _ at options _; do
  case ",$options," in *,nosuid,*) ;; *) echo "with rights: $at $options" ;; esac
done < /proc/self/mountinfo"#;
    ground.hostile("h", script);
    ground.nights();
    let said = ground.output("h");
    let found: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("with rights:") && !line.contains(": /dev/"))
        .collect();
    ground.harm(!found.is_empty(), format!("{found:?}"));
}
