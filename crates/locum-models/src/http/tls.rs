//! What https needs of this machine: its root certificates, and those that the user trusts beside them.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use locum_core::task::event::FailureKind;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use crate::model::ModelError;

/// Bytes of a file with certificates: a whole distribution's fits many times.
const CA_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Whom a connection is trusted to lead to. Nothing is loaded before it is needed: that takes longer than everything
/// else at start.
#[derive(Default)]
pub struct Tls {
    certificates: Vec<CertificateDer<'static>>,
    loaded: OnceLock<Loaded>,
}

/// What was found on this machine.
struct Loaded {
    config: Arc<ClientConfig>,
    has_certificates: bool,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("certificates", &self.certificates.len()).finish_non_exhaustive()
    }
}

impl Tls {
    /// Trusts the certificates of a PEM file beside the machine's own.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or holds no certificate.
    pub fn trusting(mut self, ca_file: &Path) -> Result<Self, ModelError> {
        let told =
            |why: String| ModelError::new(FailureKind::BadRequest, format!("the ca_file {}: {why}", ca_file.display()));
        let size = std::fs::metadata(ca_file).map_err(|error| told(error.to_string()))?;
        if !size.is_file() || size.len() > CA_FILE_BYTES_MAX {
            return Err(told("not a file of at most 4 MiB".to_owned()));
        }
        let text = std::fs::read(ca_file).map_err(|error| told(error.to_string()))?;
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        let certificates = read.map_err(|error| told(error.to_string()))?;
        if certificates.is_empty() {
            return Err(told("it holds no certificate in PEM form".to_owned()));
        }
        self.certificates.extend(certificates);
        Ok(self)
    }

    /// Encrypts a connection and makes sure that it leads to this host. Only HTTP/1.1 is offered.
    ///
    /// # Errors
    ///
    /// The host cannot have a certificate, or the other side does not show one that is trusted.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub async fn connect<S>(
        &self,
        host: &str,
        stream: S,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let mut config = self.config().as_ref().clone();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    pub(super) fn config(&self) -> &Arc<ClientConfig> {
        &self.loaded.get_or_init(|| Loaded::new(&self.certificates)).config
    }

    /// Whether it is known that this machine trusts nobody.
    pub(super) fn is_known_to_trust_nobody(&self) -> bool {
        self.loaded.get().is_some_and(|loaded| !loaded.has_certificates)
    }
}

impl Loaded {
    fn new(certificates: &[CertificateDer<'static>]) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        // What cannot be read is left out: a server whose root is missing fails with a message of its own.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots.add_parsable_certificates(certificates.iter().cloned());
        let has_certificates = !roots.is_empty();
        // The provider is named here, so nothing depends on a default that somebody must have installed.
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the ring provider supports the default versions of TLS")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { config: Arc::new(config), has_certificates }
    }
}
