//! Servers behind TLS whose certificate nobody knows but the user: they are trusted by a file, and not without it.

use std::path::PathBuf;
use std::sync::Arc;

use locum_core::task::event::FailureKind;
use locum_models::http::{HttpClient, Proxy, Timeouts};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::asking::{ask, endpoint};
use crate::openai_chat::{DONE, chat, finish, text, usage};

/// Somebody who signs certificates, and the file in which a user keeps that somebody's own.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, directory }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// A model server with a certificate for these names, signed by this one; its address.
    async fn server(&self, names: &[&str]) -> String {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        let chain = vec![CertificateDer::from(certificate.der().to_vec())];
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Whoever does not trust the certificate leaves here.
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let body = [text("Yes"), finish("stop"), usage(), DONE.to_owned()].concat();
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n";
                let answer = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
                stream.write_all(answer.as_bytes()).await.unwrap();
                stream.shutdown().await.ok();
            }
        });
        format!("https://127.0.0.1:{port}/v1")
    }
}

/// What a server answers a user who trusts this file, or none.
async fn asked(address: &str, file: Option<PathBuf>) -> Result<String, (FailureKind, String)> {
    let client = HttpClient::new(Timeouts::default(), &Proxy::default());
    let client = match file {
        Some(file) => client.trusting(&file).unwrap(),
        None => client,
    };
    let model = chat(Arc::new(client), endpoint(address.to_owned())).unwrap();
    ask(&model).await.0.map(|reply| reply.text).map_err(|error| (error.kind, error.message))
}

#[tokio::test]
async fn a_certificate_is_trusted_by_the_users_file_and_not_without_it() {
    let authority = Authority::new();
    let address = authority.server(&["127.0.0.1"]).await;
    assert_eq!(asked(&address, Some(authority.file())).await, Ok("Yes".to_owned()));
    let stranger = Authority::new();
    for file in [None, Some(stranger.file())] {
        let (kind, message) = asked(&address, file).await.unwrap_err();
        assert_eq!(kind, FailureKind::Network, "{message}");
        assert!(message.contains("certificate"), "{message}");
        assert!(!message.contains("sk-secret-key"), "{message}");
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused_though_its_issuer_is_trusted() {
    let authority = Authority::new();
    let address = authority.server(&["other.example"]).await;
    let (kind, message) = asked(&address, Some(authority.file())).await.unwrap_err();
    assert_eq!(kind, FailureKind::Network, "{message}");
    assert!(message.contains("certificate"), "{message}");
}
