//! Which face a door shows.

use clap::{Args, ValueEnum};
use locum::faces::Face;

/// The face of `call`, `tools` and `mcp`.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct FaceArgs {
    /// Whose tools: locum's own, or those of another program, answered in its way
    #[arg(long, value_name = "FACE", value_enum, default_value_t = FaceName::Native)]
    face: FaceName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FaceName {
    Native,
    Tallow,
    Pi,
    Acai,
    Picoclaw,
}

impl FaceArgs {
    pub(crate) fn face(self) -> Face {
        match self.face {
            FaceName::Native => Face::Native,
            FaceName::Tallow => Face::Tallow,
            FaceName::Pi => Face::Pi,
            FaceName::Acai => Face::Acai,
            FaceName::Picoclaw => Face::Picoclaw,
        }
    }
}
