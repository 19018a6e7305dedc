//! Replies under way, as far as they were said: whoever begins to listen in the middle of one hears it from its
//! beginning.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use locum_core::ids::{Seq, Uid};

/// Replies that are kept at once: as many as there are tasks under way, and then some of other processes.
const REPLIES_MAX: usize = 1024;

/// Bytes of one reply that are kept; of a longer one nothing is.
const REPLY_BYTES_MAX: usize = 1024 * 1024;

/// What was said of each reply. Nothing panics or awaits under the lock.
#[derive(Debug, Default)]
pub(super) struct Sayings(Mutex<BTreeMap<Uid, Said>>);

#[derive(Debug)]
struct Said {
    after: Seq,
    text: String,
}

impl Sayings {
    /// Takes up a piece.
    pub(super) fn add(&self, uid: &Uid, after: Seq, offset: usize, text: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if offset == 0 {
            all.insert(uid.clone(), Said { after, text: text.to_owned() });
            // Of other processes' replies nobody says that they ended; those of the oldest tasks go first.
            if all.len() > REPLIES_MAX {
                all.pop_first();
            }
            return;
        }
        let Some(said) = all.get_mut(uid) else { return };
        if said.after == after && said.text.len() == offset && offset + text.len() <= REPLY_BYTES_MAX {
            said.text.push_str(text);
        } else {
            // A reply with a gap is not one.
            all.remove(uid);
        }
    }

    /// Forgets the reply of a task: it is whole, or will not be.
    pub(super) fn end(&self, uid: &Uid) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    /// The reply of a task so far, and the entry that it comes after.
    pub(super) fn so_far(&self, uid: &Uid) -> Option<(Seq, String)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(uid).map(|said| (said.after, said.text.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece: the entry that its reply comes after, where it begins, and what it says.
    type Piece<'a> = (Seq, usize, &'a str);

    #[test]
    fn a_reply_is_kept_from_its_beginning_and_without_gaps() {
        let uid = Uid::parse("01arz3ndektsv4rrffq69g5fav").unwrap();
        // What is known after these pieces.
        let cases: [(&[Piece<'_>], Option<&str>); 5] = [
            (&[(3, 0, "one "), (3, 4, "two")], Some("one two")),
            (&[(3, 4, "two")], None),
            (&[(3, 0, "one "), (3, 9, "four")], None),
            (&[(3, 0, "one "), (3, 0, "one two")], Some("one two")),
            (&[(3, 0, "one "), (5, 4, "two")], None),
        ];
        for (pieces, known) in cases {
            let sayings = Sayings::default();
            for (after, offset, text) in pieces {
                sayings.add(&uid, *after, *offset, text);
            }
            assert_eq!(sayings.so_far(&uid).map(|(_, text)| text).as_deref(), known, "{pieces:?}");
            sayings.end(&uid);
            assert_eq!(sayings.so_far(&uid), None);
        }
    }
}
