//! `write`: a whole file, new or in place of what is there.

use locum_core::limits;
use locum_core::transcript::ToolOutput;
use schemars::JsonSchema;
use serde::Deserialize;

use super::bounded;
use super::writing::{Revision, Writing};

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    #[serde(alias = "file_path")]
    path: String,
    content: String,
}

impl Writing for Write {
    const NAME: &'static str = "write";
    const DESCRIPTION: &'static str = include_str!("write.md");

    fn path(&self) -> &str {
        &self.path
    }

    fn revise(&self, before: Option<&[u8]>) -> Result<Revision, ToolOutput> {
        let size = self.content.len();
        if size > limits::WRITTEN_BYTES_MAX {
            let (size, most) = (bounded::size(size as u64), bounded::size(limits::WRITTEN_BYTES_MAX as u64));
            return Err(ToolOutput::failed(format!("the content has {size}; {most} are the most")));
        }
        let what = if before.is_some() { "replaced" } else { "created" };
        let lines = bounded::count(self.content.lines().count() as u64, "line");
        let said = format!("{what} ({lines}, {})", bounded::size(size as u64));
        Ok(Revision { content: self.content.clone().into_bytes(), said })
    }
}
