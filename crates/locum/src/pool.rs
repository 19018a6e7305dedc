//! Where blocking work runs: at most so many at once, so that a thousand tasks do not start a thousand threads.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// A bounded place for blocking work.
#[derive(Debug)]
pub(crate) struct Pool {
    places: Arc<Semaphore>,
}

impl Default for Pool {
    fn default() -> Self {
        // Searching files is half waiting for the disk: two for each core keep both busy.
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Self { places: Arc::new(Semaphore::new(cores * 2)) }
    }
}

impl Pool {
    /// Runs blocking work when a place is free. Dropping the future does not end work that has begun: it must look at
    /// its own stop token. A panic in the work is an error.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let place =
            Arc::clone(&self.places).acquire_owned().await.map_err(|_| PoolError("the pool is closed".to_owned()))?;
        let joined = tokio::task::spawn_blocking(move || {
            // The place is given back when the work ends, not when somebody stops waiting for it.
            let _place = place;
            work()
        });
        joined.await.map_err(|error| PoolError(format!("the work panicked: {error}")))
    }
}

/// Blocking work that did not end well.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct PoolError(String);
