//! Tasks in worktrees whose processes are killed at random moments, eight at a time. Afterwards every task has ended,
//! everything that an agent wrote can be reached, and the user's checkout is as it was. Set `LOCUM_TEST_SEED` to the
//! seed of a failure to choose the same moments again.

mod verdict;
mod woods;

use self::woods::{Woods, real_git};

/// Lives of the campaign, if `LOCUM_TEST_LIVES` does not say otherwise: `cargo xtask ci --full` asks for 300.
const LIVES: u32 = 24;

#[test]
fn killed_at_any_moment_no_work_is_lost_and_the_checkout_is_as_it_was() {
    let lives = std::env::var("LOCUM_TEST_LIVES").ok().and_then(|lives| lives.parse().ok()).unwrap_or(LIVES);
    let mut woods = Woods::new(None);
    woods.measure();
    // Chance lets some end by themselves: it goes on until as many were killed as show something.
    while woods.born() < lives || woods.kills < lives / 2 {
        woods.live_and_die();
    }
    let (born, kills, seed) = (woods.born(), woods.kills, woods.seed);
    println!("{born} lives begun, {kills} of their processes killed");
    assert_eq!(woods.verdict(), [""; 0], "seed {seed}");
}

/// The campaign is worth something only if it notices what it looks for: with a git that does not do what protects the
/// user's work, it fails.
#[test]
fn without_what_protects_the_work_the_campaign_fails() {
    let cases = [
        // Nobody looks what is in a directory before it goes, and it goes by force.
        (
            r#"*"worktree remove"*) for path; do :; done; exec {git} worktree remove --force "$path" ;; *ls-files*) exit 0 ;;"#,
            "cannot be reached",
        ),
        // What was committed is on no branch.
        (
            r#"*update-ref*refs/heads/locum/*) for last; do :; done; test -z "$last" || exit 0; exec {git} "$@" ;;"#,
            "cannot be reached",
        ),
        // A file of the user is written to.
        (r#"*write-tree*) echo sabotage > {project}/untracked.txt; exec {git} "$@" ;;"#, "the checkout has changed"),
        // A lock of somebody else is in the way.
        (r#"*write-tree*) echo "fatal: Unable to create 'index.lock': File exists" >&2; exit 128 ;;"#, "index.lock"),
    ];
    for (case, expected) in cases {
        let mut woods = Woods::new(Some(&case.replace("{git}", &real_git())));
        woods.measure();
        let verdict = woods.verdict();
        assert!(verdict.iter().any(|complaint| complaint.contains(expected)), "{case}: {verdict:#?}");
    }
}
