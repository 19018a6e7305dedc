//! No lock in a public signature: how a type guards its state is its own business, and a guard that leaves
//! the module can be held across an `.await`.

use super::functions::{Function, shipped_functions};
use super::report::Problem;
use super::source::SourceFile;
use super::words::contains_word;

const RULE: &str = "lock-in-signature";

const LOCKS: &[&str] =
    &["Mutex<", "RwLock<", "MutexGuard", "OwnedMutexGuard", "MappedMutexGuard", "RwLockReadGuard", "RwLockWriteGuard"];

/// Reports public functions of crates that take or return a lock.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.crate_name().is_some()) {
        for function in shipped_functions(file).filter(is_public) {
            let lock = LOCKS.iter().find(|lock| contains_word(function.signature, lock));
            if let Some(lock) = lock {
                let message = format!(
                    "`{}` shows a `{}`; offer a method that does the work under the lock",
                    function.name,
                    lock.trim_end_matches('<')
                );
                problems.push(Problem::failure(&file.path, function.line, RULE, message));
            }
        }
    }
    problems
}

/// `pub`, but not `pub(crate)` and the like.
fn is_public(function: &Function<'_>) -> bool {
    function.qualifiers.split(' ').next() == Some("pub")
}

#[cfg(test)]
mod tests {
    use super::super::testing::found;
    use super::*;

    #[test]
    fn locks_stay_private() {
        for (code, expected) in [
            ("pub fn f(a: &Mutex<u8>) {}", [(1, RULE)].as_slice()),
            ("pub async fn f(\n    a: Arc<RwLock<u8>>,\n) {\n}", &[(1, RULE)]),
            ("pub const fn f(&self) -> std::sync::MutexGuard<'_, u8> {}", &[(1, RULE)]),
            ("pub(crate) fn f(a: &Mutex<u8>) {}", &[]),
            ("fn f(a: &Mutex<u8>) {}", &[]),
            ("pub fn f() { let a: Mutex<u8>; }", &[]),
            ("pub fn f(a: &MyMutex<u8>) {}", &[]),
        ] {
            assert_eq!(found(check, "crates/a/src/b.rs", code), expected, "{code}");
        }
    }
}
