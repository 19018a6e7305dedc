//! Noticing that agent files have changed. The system tells of changes; where it cannot, whoever asks looks at the
//! files again. Nothing is read here, and nothing happens until somebody asks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::stamps::Stamps;

/// A writer that was quiet for this long has probably finished a file.
const QUIET: Duration = Duration::from_millis(20);
/// One that is never quiet is not waited for.
const QUIET_MAX: Duration = Duration::from_millis(200);
/// Directories that are watched; more are looked at instead, because systems allow few.
const WATCHES_MAX: usize = 400;

/// Notices changes of files.
pub(crate) struct Watch {
    how: How,
}

enum How {
    /// The system tells of changes.
    Told { watcher: RecommendedWatcher, watched: BTreeSet<PathBuf>, changes: Arc<Mutex<Changes>> },
    /// Every look is a look at the files.
    Looking,
}

/// What was told since the files were read.
#[derive(Default)]
struct Changes {
    /// What changes must be about; the system tells of more.
    paths: Vec<PathBuf>,
    first_and_last: Option<(Instant, Instant)>,
}

impl Watch {
    /// A watch that was told of nothing yet.
    pub(crate) fn new() -> Self {
        let changes = Arc::new(Mutex::new(Changes::default()));
        let told = Arc::clone(&changes);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let mut changes = lock(&told);
            match event {
                // Our own reading is told too.
                Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
                Ok(event) if !event.need_rescan() && !event.paths.iter().any(|path| changes.concern(path)) => {}
                // What could not be told may have been anything.
                Ok(_) | Err(_) => changes.note(Instant::now()),
            }
        });
        let told = |watcher| How::Told { watcher, watched: BTreeSet::new(), changes };
        Self { how: watcher.map_or(How::Looking, told) }
    }

    /// Whether the files should be read again.
    pub(crate) fn is_due(&self, stamps: &Stamps) -> bool {
        match &self.how {
            How::Looking => !stamps.are_current(),
            How::Told { changes, .. } => lock(changes).have_settled(Instant::now()),
        }
    }

    /// To be said before the files are read: what was told until now is known then.
    pub(crate) fn begin(&mut self) {
        if let How::Told { changes, .. } = &self.how {
            lock(changes).first_and_last = None;
        }
    }

    /// To be said after the files were read: from now on these are watched.
    pub(crate) fn follow(&mut self, stamps: &Stamps) {
        let How::Told { watcher, watched, changes } = &mut self.how else { return };
        let wanted: BTreeSet<PathBuf> = stamps.paths().filter_map(nearest_directory).collect();
        lock(changes).paths = stamps.paths().map(Path::to_owned).collect();
        for gone in watched.difference(&wanted) {
            // What was removed is not watched any more anyway.
            watcher.unwatch(gone).ok();
        }
        let all = wanted.len() <= WATCHES_MAX
            // A directory that was removed and made again has lost its watch, and nothing says so.
            && wanted.iter().all(|path| watcher.watch(path, RecursiveMode::NonRecursive).is_ok());
        *watched = wanted;
        if !all {
            self.how = How::Looking;
        } else if !stamps.are_current() {
            // It changed after it was read and before it was watched.
            lock(changes).note(Instant::now());
        }
    }
}

impl Changes {
    /// Whether a change at this path may be one of what was read: of it, in it, or of a directory around it.
    fn concern(&self, path: &Path) -> bool {
        self.paths.iter().any(|known| path.starts_with(known) || known.starts_with(path))
    }

    fn note(&mut self, now: Instant) {
        let first = self.first_and_last.map_or(now, |(first, _)| first);
        self.first_and_last = Some((first, now));
    }

    fn have_settled(&self, now: Instant) -> bool {
        let after = |moment: Instant| now.saturating_duration_since(moment);
        self.first_and_last.is_some_and(|(first, last)| after(last) >= QUIET || after(first) >= QUIET_MAX)
    }
}

/// The directory that tells of a change at this path: itself, else the nearest one around it that is there.
fn nearest_directory(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|ancestor| ancestor.is_dir()).map(Path::to_owned)
}

fn lock(changes: &Mutex<Changes>) -> std::sync::MutexGuard<'_, Changes> {
    // What a panicking thread left behind is at worst a change too many.
    changes.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_settle_when_a_writer_is_quiet_or_never_is() {
        let start = Instant::now();
        let mut changes = Changes::default();
        assert!(!changes.have_settled(start + QUIET_MAX));
        changes.note(start);
        assert!(!changes.have_settled(start));
        assert!(changes.have_settled(start + QUIET));
        changes.note(start + QUIET);
        assert!(!changes.have_settled(start + QUIET));
        changes.note(start + QUIET_MAX);
        assert!(changes.have_settled(start + QUIET_MAX));
    }

    #[test]
    fn only_what_was_read_is_of_concern() {
        let changes = Changes { paths: vec!["/p/.locum/agents".into(), "/s/trust.json".into()], first_and_last: None };
        for (path, expected) in [
            ("/p/.locum/agents/a.md", true),
            ("/p/.locum/agents/deep/a.md", true),
            ("/p/.locum", true),
            ("/p/README.md", false),
            ("/s/trust.json", true),
            ("/s/trust.lock", false),
        ] {
            assert_eq!(changes.concern(Path::new(path)), expected, "{path}");
        }
    }
}
