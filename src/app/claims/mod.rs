//! Claims: which process works on what, so that several may work in one folder.
//!
//! A process has a file `OWNER.owner` that it rewrites now and then, which also says how much
//! memory it holds, and a file
//! `KEY.claim` for each thing that it works on, made by exclusive creation. A claim is
//! stale when its owner's file is gone, when the owner is a process of this machine that
//! does not run any more, or ran before the machine booted again, and else when the
//! owner's file has not changed for so long as somebody watched it by a clock that only
//! runs forwards. What the machines' calendars say does not matter.
//!
//! A stale claim says what a process was about when it ended. It stays until somebody
//! takes it over, or tidies up and has no use for it.
//!
//! Should two take each other's claims for stale, both find out the same and write the
//! same bytes.

mod beat;
mod held;
mod owner;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gpumodel_core::units::{Passing, UNFINISHED, read_file};

use beat::Beating;
use held::Held;
use owner::Life;

pub(super) use held::Claim;
pub(super) use owner::Owner;

/// How a claim's file ends.
const CLAIM: &str = "claim";

/// How an owner's file ends.
const OWNER: &str = "owner";

/// The claims of one folder, as one process sees them.
#[derive(Debug)]
pub(super) struct Claims {
    folder: PathBuf,
    owner: Owner,
    expiry: Duration,
    held: Held,
    /// By owner: what its file held, and since when.
    watched: Mutex<BTreeMap<Owner, (Vec<u8>, Instant)>>,
    beating: Beating,
}

impl Claims {
    /// Enters this process in `folder`. Others may take it for gone when it has not
    /// been heard of for `expiry`.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub(super) fn enter(folder: &Path, expiry: Duration) -> io::Result<Self> {
        let owner = Owner::this();
        let path = folder.join(format!("{}.{OWNER}", owner.name()));
        // A file of that name can only be this process's own, from a sweep before.
        let _ = fs::remove_file(&path);
        let beating = Beating::begin(&path, expiry)?;
        Ok(Self {
            folder: folder.to_path_buf(),
            owner,
            expiry,
            held: Held::default(),
            watched: Mutex::default(),
            beating,
        })
    }

    /// Tells others that this process holds `bytes` of memory, or is about to: at once where
    /// that is more than before.
    pub(super) fn hold(&self, bytes: u64) {
        self.beating.hold(bytes);
    }

    /// The other processes of this machine that work here, by their ids, with the bytes that
    /// each says it holds.
    ///
    /// Approximate: those of other containers on this machine are taken for processes of
    /// others.
    pub(super) fn beside(&self) -> Vec<(u32, u64)> {
        let other = |path: PathBuf| {
            let owner = (path.extension()? == OWNER).then(|| path.file_stem())??;
            let pid = Owner::named(&owner.to_string_lossy()).beside(&self.owner)?;
            Some((pid, beat::bytes(&read_file(&path).ok()?)))
        };
        self.files().into_iter().filter_map(other).collect()
    }

    /// Claims `key`; `None`: somebody else works on it, perhaps another thread. The claim
    /// ends with the value.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub(super) fn take(&self, key: &str) -> io::Result<Option<Claim>> {
        let path = self.claim(key);
        let Some(held) = self.held.take(key) else { return Ok(None) };
        let (host, pid) = self.owner.host_and_pid();
        let time = seconds();
        let text = format!("{}\nhost {host}\npid {pid}\ntime {time}\n", self.owner.name());
        // More than once only where others come and go meanwhile.
        for _ in 0..4 {
            match read_file(&path) {
                // Nobody else has that name, and nobody here has the key. A network file
                // system may lose the answer to who makes or removes a file: then it was
                // made though it said no, or is there still.
                Ok(found) if by(&found) == self.owner => {
                    return Passing::adopt(&path, &found).map(|file| Some(Claim::new(file, held)));
                }
                Ok(found) if self.gone(&by(&found)) => Self::discard(&path, &found),
                Ok(_) => return Ok(None),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    if let Some(file) = Passing::create_new(&path, text.as_bytes())? {
                        return Ok(Some(Claim::new(file, held)));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Who works on `key`, as far as a file says so.
    pub(super) fn holder(&self, key: &str) -> Option<Owner> {
        read_file(&self.claim(key)).ok().map(|found| by(&found))
    }

    fn claim(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.{CLAIM}"))
    }

    /// Removes a claim that holds `found`, and no other that somebody has put there since:
    /// of several who find it stale one removes it, while it has the file locked.
    fn discard(path: &Path, found: &[u8]) {
        let Ok(file) = File::options().read(true).write(true).open(path) else { return };
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return;
        }
        // Where a file system has no locks, this is all that can be done.
        if read_file(path).is_ok_and(|now| now == found) {
            let _ = fs::remove_file(path);
        }
    }

    /// Whether a process does not work here any more.
    fn gone(&self, owner: &Owner) -> bool {
        if *owner == self.owner {
            return false;
        }
        let path = self.folder.join(format!("{}.{OWNER}", owner.name()));
        let beat = match read_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return true,
            // Perhaps put in its place anew again and again: it is heard of by and by.
            read => read.unwrap_or_default(),
        };
        match owner.life() {
            Life::Alive => false,
            Life::Gone => true,
            Life::Unknown => {
                let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
                let seen = watched.entry(owner.clone()).or_insert((Vec::new(), Instant::now()));
                if seen.0 != beat {
                    *seen = (beat, Instant::now());
                }
                seen.1.elapsed() >= self.expiry
            }
        }
    }

    /// The keys of processes that are gone and had not ended their claims.
    pub(super) fn abandoned(&self) -> BTreeSet<String> {
        let stale = |path: PathBuf| {
            let key = key(&path)?;
            let gone = read_file(&path).is_ok_and(|found| self.gone(&by(&found)));
            gone.then(|| key.to_owned())
        };
        self.files().into_iter().filter_map(stale).collect()
    }

    /// Removes what processes that are gone have left, but for claims whose keys `kept`
    /// takes; true when no other is here.
    pub(super) fn tidy(&self, kept: impl Fn(&str) -> bool) -> bool {
        // Who has made one of these has entered before: listed first, those that are not
        // finished are nobody's when nobody is there then.
        let mut left = self.files();
        left.retain(|path| path.to_string_lossy().ends_with(UNFINISHED));
        let files = self.files();
        let mut alone = true;
        for path in files.iter().filter(|path| path.extension().is_some_and(|e| e == OWNER)) {
            let owner = Owner::named(&path.file_stem().unwrap_or_default().to_string_lossy());
            if self.gone(&owner) {
                let _ = fs::remove_file(path);
            } else {
                alone &= owner == self.owner;
            }
        }
        for (path, key) in files.iter().filter_map(|path| Some((path, key(path)?))) {
            let Ok(found) = read_file(path) else { continue };
            if self.gone(&by(&found)) && !kept(key) {
                Self::discard(path, &found);
            }
        }
        for path in left.iter().filter(|_| alone) {
            // Perhaps of one that enters just now: it writes its file once more.
            let _ = fs::remove_file(path);
        }
        alone
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }
}

/// The key of the claim in the file `path`; `None`: it is no claim's.
fn key(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.strip_suffix(CLAIM)?.strip_suffix('.')
}

/// Who has written a claim.
fn by(claim: &[u8]) -> Owner {
    let text = String::from_utf8_lossy(claim);
    Owner::named(text.lines().next().unwrap_or_default())
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, Instant, SystemTime};

    use super::{Claims, Owner};

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn one_of_two_works_on_a_cell() {
        let folder = tempfile::tempdir().unwrap();
        let claims = Claims::enter(folder.path(), LONG).unwrap();
        let mine = claims.take("k").unwrap();
        assert!(mine.is_some() && claims.take("k").unwrap().is_none());
        assert!(claims.take("l").unwrap().is_some());
        drop(mine);
        assert!(claims.take("k").unwrap().is_some());
        assert!(claims.tidy(|_| false));
        drop(claims);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn processes_of_one_machine_hear_what_each_of_them_holds() {
        let folder = tempfile::tempdir().unwrap();
        let claims = Claims::enter(folder.path(), LONG).unwrap();
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(format!("{name}.owner")), text).unwrap();
        };
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let (pid, other) = (child.id(), Owner::of(child.id()));
        write(other.name(), "3 9 4096\n");
        write("far~b~1~7~1", "3 9 5000\n");
        claims.hold(70);
        assert_eq!(claims.beside(), [(pid, 4096)], "neither its own nor another machine's");
        write(other.name(), "4 9\n");
        assert_eq!(claims.beside(), [(pid, 0)], "an older program does not say it");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(claims.beside(), []);
    }

    #[test]
    fn what_a_killed_process_has_claimed_is_free_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let claims = Claims::enter(folder.path(), LONG).unwrap();
        let name = claims.owner.name().rsplit_once('~').unwrap().0.to_owned() + "~1";
        fs::write(folder.path().join("k.claim"), format!("{name}\n")).unwrap();
        fs::write(folder.path().join("l.claim"), "").unwrap();
        fs::write(folder.path().join(format!("{name}.owner")), "3 9").unwrap();
        assert_eq!(claims.abandoned().into_iter().collect::<Vec<_>>(), ["k", "l"]);
        assert!(claims.take("k").unwrap().is_some());
        assert!(claims.tidy(|key| key == "l"));
        assert!(!folder.path().join(format!("{name}.owner")).exists());
        assert_eq!(claims.abandoned().into_iter().collect::<Vec<_>>(), ["l"]);
        assert!(claims.take("l").unwrap().is_some());
        assert!(claims.tidy(|_| false));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "its own file");
    }

    #[test]
    fn a_claim_of_its_own_that_it_does_not_know_of_is_taken_and_one_it_has_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.claim");
        let claims = Claims::enter(folder.path(), LONG).unwrap();
        // As where a server has made the file and its answer was lost.
        fs::write(&path, format!("{}\nhost h\n", claims.owner.name())).unwrap();
        assert!(claims.abandoned().is_empty());
        let mine = claims.take("k").unwrap();
        assert!(mine.is_some() && claims.take("k").unwrap().is_none());
        drop(mine);
        assert!(!path.exists());
        assert!(claims.take("k").unwrap().is_some());
    }

    #[test]
    fn of_many_who_find_a_claim_stale_one_takes_it_and_nobody_ends_anothers() {
        let folder = tempfile::tempdir().unwrap();
        let all: Vec<Claims> = (1..=8)
            .map(|process| {
                let mut claims = Claims::enter(folder.path(), LONG).unwrap();
                // As if each were a process of another machine.
                claims.owner = Owner::named(&format!("far~b~1~{process}~1"));
                let file = format!("{}.owner", claims.owner.name());
                fs::write(folder.path().join(file), "0 0").unwrap();
                claims
            })
            .collect();
        for round in 0..200 {
            let key = format!("k{round}");
            let path = folder.path().join(format!("{key}.claim"));
            fs::write(&path, "far~b~1~9~1\n").unwrap();
            let taken: Vec<_> = std::thread::scope(|scope| {
                let key = &key;
                let take = |claims| scope.spawn(move || Claims::take(claims, key).unwrap());
                let all: Vec<_> = all.iter().map(take).collect();
                all.into_iter().filter_map(|one| one.join().unwrap()).collect()
            });
            assert_eq!(taken.len(), 1, "round {round}");
            // Taken from it meanwhile: it does not end what is another's.
            fs::write(&path, "far~b~1~8~1\n").unwrap();
            drop(taken);
            assert!(path.is_file());
        }
    }

    #[test]
    fn a_claim_that_was_taken_anew_is_left_to_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.claim");
        fs::write(&path, "new").unwrap();
        Claims::discard(&path, b"old");
        assert_eq!(fs::read(&path).unwrap(), b"new");
        Claims::discard(&path, b"new");
        assert!(!path.exists());
    }

    #[test]
    fn a_calendar_that_goes_back_makes_nobody_stale_and_keeps_nobody_alive() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let expiry = Duration::from_millis(300);
        let claims = Claims::enter(folder.path(), expiry).unwrap();
        let begin = Instant::now();
        fs::write(at("k.claim"), "far~b~1~1~1\ntime 99999999999\n").unwrap();
        // It is heard of, in files from ever longer ago: it works on.
        for beat in 0..12_u64 {
            fs::write(at("far~b~1~1~1.owner"), format!("{beat} 0")).unwrap();
            let file = fs::File::options().write(true).open(at("far~b~1~1~1.owner")).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(9000 - beat)).unwrap();
            assert!(claims.take("k").unwrap().is_none());
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(begin.elapsed() > expiry && !claims.tidy(|_| false));
        // It is not heard of any more, though its file is from the future.
        let file = fs::File::options().write(true).open(at("far~b~1~1~1.owner")).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(1 << 30)).unwrap();
        let silent = Instant::now();
        let claim = loop {
            if let Some(claim) = claims.take("k").unwrap() {
                break claim;
            }
            assert!(silent.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(silent.elapsed() + Duration::from_millis(60) >= expiry);
        drop(claim);
        assert!(claims.tidy(|_| false));
    }
}
