//! Whether locks reach the other machines that see a folder.
//!
//! A network file system can be mounted so that each machine keeps its own locks. Taking one then
//! succeeds and keeps nobody away, so the mount itself has to be looked at.

use std::path::Path;

/// Says why locks in `folder` are this machine's alone, where the system tells it.
pub(super) fn only_local_locks(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    reason(&table, &folder)
}

/// Of a line such as `36 35 0:42 / /home rw shared:1 - nfs4 server:/home rw,local_lock=none`: the
/// place is the fifth word, and after the dash stand the kind, the source and the options.
fn reason(table: &str, folder: &Path) -> Option<String> {
    let mounts = table.lines().filter_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let place = unescaped(mount.split(' ').nth(4)?);
        let mut system = system.split(' ');
        let (kind, source, options) = (system.next()?, system.next()?, system.next()?);
        folder.starts_with(&place).then_some((place, kind, source, options))
    });
    // The innermost; of several at one place the last hides the others.
    let (place, kind, source, options) = mounts.max_by_key(|(place, ..)| place.len())?;
    let local: &[&str] = match kind {
        "nfs" | "nfs4" => &["nolock", "local_lock=flock", "local_lock=all"],
        "lustre" => &["localflock"],
        _ => return None,
    };
    let option = options.split(',').find(|option| local.contains(option))?;
    Some(format!("{place} ({kind} from {source}) is mounted with `{option}`"))
}

/// Spaces and the like are written as `\040`.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = after;
            }
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /home rw - nfs4 store:/home rw,vers=4.2,local_lock=none,addr=10.0.0.2
31 22 0:41 / /old rw - nfs store:/old rw,vers=3,nolock,addr=10.0.0.2
32 30 0:42 / /home/my\040lab rw - nfs store:/lab rw,vers=3,local_lock=flock
33 22 0:43 / /scratch rw - lustre 10.0.0.3@tcp:/s rw,flock
34 22 0:44 / /fast rw - lustre 10.0.0.3@tcp:/f rw,localflock
35 22 0:45 / /over rw - nfs store:/a rw,local_lock=all
36 22 0:46 / /over rw - tmpfs tmpfs rw
";

    #[test]
    fn mounts_that_keep_locks_to_themselves_are_known() {
        let found = |folder: &str| reason(TABLE, Path::new(folder));
        for fine in ["/srv/x", "/home/me", "/home", "/scratch/x", "/older", "/over/x"] {
            assert_eq!(found(fine), None, "{fine}");
        }
        let bad = [("/old/runs", "nolock"), ("/fast", "localflock"), ("/home/my lab/x", "flock")];
        for (folder, option) in bad {
            let said = found(folder).unwrap();
            assert!(said.contains(&format!("{option}`")) && said.contains("mounted"), "{said}");
        }
        assert_eq!(unescaped(r"a\040b\x\04"), r"a b\x\04");
        assert_eq!(reason("nonsense\n\n - \n", Path::new("/")), None);
    }
}
