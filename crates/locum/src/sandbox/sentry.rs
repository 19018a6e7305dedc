//! Protected names that a command makes. Nothing can be mounted over what is not there, and something put there would
//! be in the way of whoever else works in the project. So the launcher, which stands outside, is the sentry at
//! these names, and moves what appears there away at once: beside it, under a name on which no program acts. Nothing
//! is lost, nothing is left behind when the launcher is killed, and the answer says what was done.

use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, inotify};
use rustix::io::Errno;

/// What is added to the name of what was moved away.
const KEPT: &str = ".locum-kept";

/// Names that are tried for one thing that is moved away.
const KEPT_NAMES_MAX: u32 = 100;

/// How often one command may make protected names. One that does not stop is ended.
const MOVES_MAX: usize = 32;

/// Without news from the kernel, how often one looks, in milliseconds.
const LOOK_MS: u16 = 50;

/// Whoever watches over names where nothing was when a command began.
pub(super) struct Sentry {
    root: OwnedFd,
    /// Below the root.
    vacant: Vec<PathBuf>,
    /// Names at which something was. They are vacant as soon as the sentry of another command moves that away: then it
    /// was made by that command.
    occupied: Vec<PathBuf>,
    /// The kernel's news of what is made in the directories of these names, if it has any to give.
    news: Option<OwnedFd>,
    moves: usize,
    notes: Vec<String>,
}

impl Sentry {
    /// Begins to listen for what is made at a project's root.
    pub(super) fn new(root: &Path) -> Result<Self, String> {
        let root = rustix::fs::open(root, directory_flags(), Mode::empty())
            .map_err(|error| format!("{} cannot be opened: {error}", root.display()))?;
        let news = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).ok();
        let mut sentry = Self { root, vacant: Vec::new(), occupied: Vec::new(), news, moves: 0, notes: Vec::new() };
        if !sentry.listen_at(sentry.root.as_fd()) {
            sentry.news = None;
        }
        Ok(sentry)
    }

    /// Begins to watch over these names.
    pub(super) fn watch_over(&mut self, vacant: Vec<PathBuf>, occupied: Vec<PathBuf>) {
        (self.vacant, self.occupied) = (vacant, occupied);
        // This begins to listen at the directories on the way.
        self.vacant.iter().chain(&self.occupied).for_each(|path| drop(self.find(path)));
    }

    /// Reads what is reported until everybody who could report has ended, and meanwhile moves away what appears.
    pub(super) fn watch_until_end(&mut self, report: &OwnedFd, first: Pid) -> Vec<u8> {
        let (mut said, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            let mut fds = vec![PollFd::new(report.as_fd(), PollFlags::POLLIN)];
            fds.extend(self.news.iter().map(|news| PollFd::new(news.as_fd(), PollFlags::POLLIN)));
            let timeout = match self.vacant.is_empty() || self.news.is_some() {
                true => PollTimeout::NONE,
                false => PollTimeout::from(LOOK_MS),
            };
            // An interruption is no news; everything is looked at again.
            poll(&mut fds, timeout).ok();
            let has_report = fds.first().and_then(PollFd::any).unwrap_or(false);
            if self.has_news() {
                self.look();
            }
            if self.has_ended_it() {
                // A child until it is waited for, so nobody else has the number.
                kill(first, Signal::SIGKILL).ok();
            }
            if has_report {
                match nix::unistd::read(report, &mut piece) {
                    Ok(0) => return said,
                    Ok(count) => said.extend_from_slice(&piece[..count]),
                    Err(nix::errno::Errno::EINTR) => {}
                    // What was said before the reading failed still counts.
                    Err(_) => return said,
                }
            }
        }
    }

    /// Moves away what is there now.
    pub(super) fn look(&mut self) {
        for path in self.vacant.clone() {
            let Some((directory, name, said)) = self.find(&path) else { continue };
            let note = match move_away(directory.as_fd(), &name) {
                Ok(None) => continue,
                Ok(Some(kept)) => {
                    self.moves += 1;
                    format!(
                        "protected: `{}` was made while the command ran. Programs outside act on that name, so it is \
                         now `{}`: tell the user, who can move it back",
                        said.display(),
                        said.with_file_name(kept).display()
                    )
                }
                Err(error) => format!(
                    "protected: `{}` was made while the command ran and cannot be moved away: {error}. Tell the user",
                    said.display()
                ),
            };
            if self.notes.len() <= MOVES_MAX && !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Whether the command was ended because it went on making protected names.
    pub(super) fn has_ended_it(&self) -> bool {
        self.moves > MOVES_MAX
    }

    /// Looks for the last time, when nobody is left who could make anything, and says what was done.
    pub(super) fn finish(mut self) -> Vec<String> {
        self.has_news();
        self.look();
        if self.has_ended_it() {
            self.notes.push("the command did not stop making protected names and was ended".to_owned());
        }
        self.notes
    }

    /// What is at a name: the directory it is in, what it is called there, and its path below the root. A link on the
    /// way, which was not there before, counts for what it leads to: it is not followed.
    fn find(&self, path: &Path) -> Option<(OwnedFd, OsString, PathBuf)> {
        let mut directory = self.root.try_clone().ok()?;
        let mut said = PathBuf::new();
        let mut parts = path.iter().peekable();
        while let Some(part) = parts.next() {
            said.push(part);
            let found = rustix::fs::statat(&directory, part, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let kind = FileType::from_raw_mode(found.st_mode);
            if parts.peek().is_none() || kind == FileType::Symlink {
                return Some((directory, part.to_owned(), said));
            }
            directory = rustix::fs::openat(&directory, part, directory_flags(), Mode::empty()).ok()?;
            // Before the next look, so that nothing is made unseen between the two.
            self.listen_at(directory.as_fd());
        }
        None
    }

    fn listen_at(&self, directory: BorrowedFd<'_>) -> bool {
        let Some(news) = &self.news else { return false };
        let flags = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::ONLYDIR;
        inotify::add_watch(news, format!("/proc/self/fd/{}", directory.as_raw_fd()), flags).is_ok()
    }

    /// Takes the kernel's news, and says whether one of the names may have been made.
    fn has_news(&mut self) -> bool {
        let Some(news) = &self.news else { return !self.vacant.is_empty() };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(news, &mut buffer);
        let mut concerns = false;
        let mut moved: Vec<PathBuf> = Vec::new();
        while let Ok(event) = reader.next() {
            // Without a name, some news were lost.
            let Some(name) = event.file_name() else {
                concerns = true;
                continue;
            };
            let name = name.to_string_lossy();
            concerns |= self.vacant.iter().any(|path| path.iter().any(|part| part == OsStr::new(&*name)));
            let before = name.rsplit_once(KEPT).map(|(before, _)| OsStr::new(before).to_owned());
            moved.extend(self.occupied.iter().filter(|path| path.file_name() == before.as_deref()).cloned());
        }
        self.occupied.retain(|path| !moved.contains(path));
        concerns |= !moved.is_empty();
        self.vacant.extend(moved);
        concerns
    }
}

fn directory_flags() -> OFlags {
    OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY
}

/// Gives a thing another name in its directory, and says which; nothing if it is gone already.
fn move_away(directory: BorrowedFd<'_>, name: &OsStr) -> Result<Option<OsString>, Errno> {
    for number in 1..=KEPT_NAMES_MAX {
        let mut kept = name.to_owned();
        kept.push(KEPT);
        if number > 1 {
            kept.push(format!("-{number}"));
        }
        let moved = match rustix::fs::renameat_with(directory, name, directory, &kept, RenameFlags::NOREPLACE) {
            // The file system does not know how to spare what is there: look first.
            Err(Errno::INVAL) if rustix::fs::statat(directory, &kept, AtFlags::SYMLINK_NOFOLLOW).is_err() => {
                rustix::fs::renameat(directory, name, directory, &kept)
            }
            Err(Errno::INVAL) => Err(Errno::EXIST),
            moved => moved,
        };
        match moved {
            Ok(()) => return Ok(Some(kept)),
            Err(Errno::EXIST) => {}
            // Somebody else was faster.
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn sentry(root: &Path, vacant: &[&str]) -> Sentry {
        let mut sentry = Sentry::new(root).unwrap();
        sentry.watch_over(vacant.iter().map(PathBuf::from).collect(), vec![PathBuf::from(".envrc")]);
        sentry
    }

    fn names(root: &Path) -> Vec<String> {
        let entries = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_made_is_moved_away_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let mut sentry = sentry(root, &[".mcp.json", ".vscode", ".config/git"]);
        assert!(!sentry.has_news());
        fs::write(root.join("plain"), "").unwrap();
        assert!(!sentry.has_news(), "other names are no news");
        fs::write(root.join(".mcp.json"), "first").unwrap();
        assert!(sentry.has_news());
        sentry.look();
        fs::write(root.join(".mcp.json"), "second").unwrap();
        fs::create_dir_all(root.join(".vscode/deep")).unwrap();
        fs::create_dir(root.join(".config")).unwrap();
        sentry.look();
        assert!(sentry.has_news());
        // It listens in a directory that was made meanwhile.
        fs::write(root.join(".config/git"), "").unwrap();
        assert!(sentry.has_news());
        sentry.look();
        let expected = [".config", ".mcp.json.locum-kept", ".mcp.json.locum-kept-2", ".vscode.locum-kept", "plain"];
        assert_eq!(names(root), expected);
        assert_eq!(fs::read_to_string(root.join(".mcp.json.locum-kept-2")).unwrap(), "second");
        assert_eq!(names(&root.join(".config")), ["git.locum-kept"]);
        let notes = sentry.finish();
        assert_eq!(notes.len(), 4);
        assert!(notes[3].contains("it is now `.config/git.locum-kept`"), "{notes:?}");
    }

    #[test]
    fn a_link_on_the_way_is_moved_and_what_it_leads_to_is_not_touched() {
        let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(elsewhere.path().join("git"), "mine").unwrap();
        let mut sentry = sentry(directory.path(), &[".config/git"]);
        symlink(elsewhere.path(), directory.path().join(".config")).unwrap();
        sentry.look();
        assert_eq!(names(directory.path()), [".config.locum-kept"]);
        assert_eq!(names(elsewhere.path()), ["git"]);
    }

    #[test]
    fn what_another_sentry_moved_away_is_watched_over_from_then_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".envrc");
        fs::write(&path, "made by another command").unwrap();
        let mut sentry = sentry(directory.path(), &[]);
        sentry.look();
        assert!(path.exists(), "what was there is not this command's");
        // A person's editor replaces a file.
        fs::write(directory.path().join("new"), "").unwrap();
        fs::rename(directory.path().join("new"), &path).unwrap();
        assert!(!sentry.has_news() && path.exists());
        fs::rename(&path, directory.path().join(".envrc.locum-kept")).unwrap();
        fs::write(&path, "made by this one").unwrap();
        assert!(sentry.has_news());
        sentry.look();
        assert_eq!(names(directory.path()), [".envrc.locum-kept", ".envrc.locum-kept-2"]);
    }

    #[test]
    fn without_news_from_the_kernel_one_looks_again_and_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut sentry = sentry(directory.path(), &[".mcp.json"]);
        sentry.news = None;
        fs::write(directory.path().join(".mcp.json"), "").unwrap();
        assert!(sentry.has_news());
        sentry.look();
        assert_eq!(names(directory.path()), [".mcp.json.locum-kept"]);
    }
}
