//! What faces and their terms take from the engine.

use locum_core::ids::Timestamp;
use locum_core::protocol::{FaceDefaults, Refusal};
use serde_json::Value;

use super::Desk;
use crate::faces::FaceSettings;

impl Desk {
    /// The terms of a face, with what the settings say on top.
    pub(super) fn under_settings(&self, face: FaceDefaults) -> FaceDefaults {
        let rules = &self.engine.rules;
        let face = match &self.terms {
            // What a task delegates is done as the task itself is, whatever tool it delegates with.
            Some(own) => FaceDefaults {
                tools: own.tools,
                bounds: own.bounds.clone(),
                scope: own.scope,
                read_only: own.read_only,
                ..face
            },
            None => face,
        };
        FaceDefaults {
            strict: face.strict || rules.strict,
            read_only: face.read_only && !rules.faces.allow_write,
            ..face
        }
    }

    /// What a caller sent, without known secrets: an answer may repeat it.
    pub(crate) fn without_secrets(&self, input: Value) -> Result<Value, Refusal> {
        self.engine.hands.redactor.value(input).map_err(Refusal::internal)
    }

    /// What faces need to know besides what is asked.
    pub(crate) fn face_settings(&self) -> &FaceSettings {
        &self.engine.rules.faces
    }

    /// Does blocking work where it keeps nobody waiting.
    pub(crate) async fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        self.engine.hands.pool.run(work).await.map_err(Refusal::internal)
    }

    /// The time.
    pub(crate) fn now(&self) -> Timestamp {
        self.engine.hands.clock.now()
    }
}
