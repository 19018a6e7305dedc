//! Which files a command may use, enforced by Landlock. At the level `full` it stands behind the mounts, as a second
//! wall; at `landlock` it stands alone.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};

use super::Level;
use super::hiding::{DEVICES, SECRETS, SYSTEM};
use super::order::Order;

/// Everything that is known to restrict files. What a kernel does not know, it does not enforce.
const NEWEST: ABI = ABI::V5;

/// Without it, a file outside could be emptied: too little where Landlock stands alone.
const LEAST_ALONE: ABI = ABI::V3;

/// Restricts this process and all that it starts.
pub(super) fn apply(order: &Order) -> Result<(), String> {
    let rules = match order.level {
        Level::Full => full(order),
        Level::Landlock => alone(order),
        Level::None => return Ok(()),
    };
    let restricted = rules.and_then(RulesetCreated::restrict_self);
    restricted.map(drop).map_err(|error| format!("files cannot be restricted (Landlock): {error}"))
}

fn full(order: &Order) -> Result<RulesetCreated, RulesetError> {
    let created = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .create()?;
    let temporary = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
    let writable = [order.root.clone()].into_iter().chain(temporary).chain(order.home.clone());
    let created = allow(created, [PathBuf::from("/")], readable())?;
    devices(allow(created, writable, AccessFs::from_all(NEWEST))?)
}

fn alone(order: &Order) -> Result<RulesetCreated, RulesetError> {
    let created = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST_ALONE))?
        .scope(Scope::Signal | Scope::AbstractUnixSocket)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .create()?;
    let kept: Vec<PathBuf> = order.hidden.iter().cloned().chain(SECRETS.map(PathBuf::from)).collect();
    let system = SYSTEM.iter().flat_map(|path| without(Path::new(path), &kept));
    let toolchains = order.toolchains.iter().flat_map(|path| without(path, &kept));
    let repository = order.repository.iter().flat_map(|path| without(path, &kept));
    let readable_places = system.chain(toolchains).chain(repository).chain([order.outputs()]);
    let created = allow(created, readable_places, readable())?;
    // A worktree is kept among what is hidden.
    let within: Vec<PathBuf> = kept.iter().filter(|path| path.starts_with(&order.root)).cloned().collect();
    // A command may look at itself; what others keep there is theirs, and cannot be told apart by Landlock.
    let writable = [order.temporary()].into_iter().chain(without(&order.root, &within));
    devices(allow(created, writable, AccessFs::from_all(NEWEST))?)
}

fn readable() -> BitFlags<AccessFs> {
    AccessFs::from_read(NEWEST)
}

fn devices(created: RulesetCreated) -> Result<RulesetCreated, RulesetError> {
    let access = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    allow(created, DEVICES.map(PathBuf::from), access)
}

/// Allows access to what is there, and below it.
fn allow(
    mut created: RulesetCreated,
    paths: impl IntoIterator<Item = PathBuf>,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    for path in paths {
        // What is not there needs no permission.
        let Ok(opened) = PathFd::new(&path) else { continue };
        let fitting = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
        created = created.add_rule(PathBeneath::new(opened, fitting))?;
    }
    Ok(created)
}

/// A path, or what is below it without what is hidden: a permission for a directory is one for all below it.
fn without(path: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    if hidden.iter().any(|hidden| path.starts_with(hidden)) {
        return Vec::new();
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(path)) {
        return vec![path.to_owned()];
    }
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    entries.filter_map(Result::ok).flat_map(|entry| without(&entry.path(), hidden)).collect()
}
