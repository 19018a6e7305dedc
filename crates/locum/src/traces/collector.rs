//! Where spans are sent: what the standard variables say of it, and the way there.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use locum_models::http::{HttpClient, Outgoing, Proxy, Timeouts};
use opentelemetry_http::{HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;
use secrecy::{ExposeSecret as _, SecretString};

use crate::settings::environment::Environment;

/// The variables that say whether spans are sent, and where.
pub(crate) const VARIABLES: [&str; 12] = [
    "OTEL_SDK_DISABLED",
    "OTEL_TRACES_EXPORTER",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_SERVICE_NAME",
    "OTEL_RESOURCE_ATTRIBUTES",
];

/// The one protocol that is spoken.
const PROTOCOL: &str = "http/protobuf";

/// How long one message to a collector may take, unless a variable says otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a collector's answer that are read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// A collector of spans, as the user's variables name it.
#[derive(Debug, Clone)]
pub(crate) struct Collector {
    endpoint: String,
    headers: Vec<(String, SecretString)>,
    timeout: Duration,
    service: String,
    attributes: Vec<(String, String)>,
}

impl Collector {
    /// The collector that the environment names; none if it names none.
    ///
    /// # Errors
    ///
    /// A sentence that says which variable cannot be followed.
    pub(crate) fn named_by(environment: &Environment) -> Result<Option<Self>, String> {
        let either = |end: &str| {
            let own = environment.get(&format!("OTEL_EXPORTER_OTLP_TRACES_{end}"));
            own.or_else(|| environment.get(&format!("OTEL_EXPORTER_OTLP_{end}")))
        };
        let is_off = environment.get("OTEL_SDK_DISABLED").is_some_and(|said| said.eq_ignore_ascii_case("true"));
        if is_off || environment.get("OTEL_TRACES_EXPORTER").is_some_and(|said| said != "otlp") {
            return Ok(None);
        }
        let endpoint = match environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
            Some(whole) => whole.to_owned(),
            None => match environment.get("OTEL_EXPORTER_OTLP_ENDPOINT") {
                Some(base) => format!("{}/v1/traces", base.trim_end_matches('/')),
                None => return Ok(None),
            },
        };
        if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
            return Err(format!("OTEL_EXPORTER_OTLP_ENDPOINT: `{endpoint}` must begin with http:// or https://"));
        }
        if let Some(other) = either("PROTOCOL").filter(|said| *said != PROTOCOL) {
            return Err(format!("OTEL_EXPORTER_OTLP_PROTOCOL: `{other}` is not spoken here; say {PROTOCOL}"));
        }
        let timeout = match either("TIMEOUT") {
            None => TIMEOUT,
            Some(text) => Duration::from_millis(
                text.parse()
                    .map_err(|_| format!("OTEL_EXPORTER_OTLP_TIMEOUT: `{text}` is no number of milliseconds"))?,
            ),
        };
        let headers = pairs("OTEL_EXPORTER_OTLP_HEADERS", either("HEADERS"))?;
        let mut attributes = pairs("OTEL_RESOURCE_ATTRIBUTES", environment.get("OTEL_RESOURCE_ATTRIBUTES"))?;
        let named = attributes.iter().position(|(name, _)| name == "service.name").map(|at| attributes.remove(at).1);
        let service = environment.get("OTEL_SERVICE_NAME").map(str::to_owned).or(named);
        Ok(Some(Self {
            endpoint,
            headers: headers.into_iter().map(|(name, value)| (name, value.into())).collect(),
            timeout,
            service: service.unwrap_or_else(|| "locum".to_owned()),
            attributes,
        }))
    }

    /// Its address.
    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// What must never be shown: headers carry keys.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().map(|(_, value)| value.expose_secret())
    }

    /// The way to the collector.
    pub(super) fn exporter(&self, proxy: &Proxy, ca_file: Option<&std::path::Path>) -> Result<SpanExporter, String> {
        let timeouts = Timeouts { first_byte: self.timeout, idle: self.timeout, ..Timeouts::default() };
        let client = HttpClient::new(timeouts, proxy);
        let client = match ca_file {
            Some(file) => client.trusting(file).map_err(|error| error.message)?,
            None => client,
        };
        let headers: HashMap<String, String> =
            self.headers.iter().map(|(name, value)| (name.clone(), value.expose_secret().to_owned())).collect();
        let built = SpanExporter::builder()
            .with_http()
            .with_http_client(Carrier { client: Arc::new(client), timeout: self.timeout })
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&self.endpoint)
            .with_timeout(self.timeout)
            .with_headers(headers)
            .build();
        let mut exporter = built.map_err(|error| format!("{}: {error}", self.endpoint))?;
        exporter.set_resource(&self.resource());
        Ok(exporter)
    }

    fn resource(&self) -> Resource {
        let attributes = self.attributes.iter();
        Resource::builder_empty()
            .with_service_name(self.service.clone())
            .with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_attributes(attributes.map(|(name, value)| opentelemetry::KeyValue::new(name.clone(), value.clone())))
            .build()
    }
}

/// `a=b,c=d`, with what is special written as `%20`.
fn pairs(variable: &str, text: Option<&str>) -> Result<Vec<(String, String)>, String> {
    let decoded = |text: &str| percent_encoding::percent_decode_str(text.trim()).decode_utf8_lossy().into_owned();
    let pieces = text.unwrap_or_default().split(',').filter(|piece| !piece.trim().is_empty());
    pieces
        .map(|piece| {
            let (name, value) = piece.split_once('=').ok_or_else(|| format!("{variable}: write it as name=value"))?;
            Ok((decoded(name), decoded(value)))
        })
        .collect()
}

/// Carries messages to the collector with locum's own client: through the user's proxy, with the user's certificates.
struct Carrier {
    client: Arc<HttpClient>,
    timeout: Duration,
}

impl std::fmt::Debug for Carrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Carrier").finish_non_exhaustive()
    }
}

/// What sending comes to.
type Sending<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl opentelemetry_http::HttpClient for Carrier {
    fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> Sending<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let sent = tokio::time::timeout(self.timeout, self.send(request)).await;
            sent.map_err(|_| HttpError::from("the collector did not answer in time"))?
        })
    }
}

impl Carrier {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let url = head.uri.to_string();
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        let outgoing = Outgoing { method: head.method.as_str(), url: &url, headers, body: body.to_vec() };
        let mut answer = self.client.exchange(outgoing).await?;
        let status = answer.status();
        let mut read = Vec::new();
        while let Some(piece) = answer.chunk().await? {
            read.extend_from_slice(&piece);
            if read.len() > ANSWER_BYTES_MAX {
                break;
            }
        }
        Ok(Response::builder().status(status).body(Bytes::from(read))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(variables: &[(&str, &str)]) -> String {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment = Environment::new(variables, "/".into());
        match Collector::named_by(&environment) {
            Ok(None) => "off".to_owned(),
            Err(error) => error,
            Ok(Some(collector)) => {
                let headers: Vec<String> =
                    collector.headers.iter().map(|(name, value)| format!("{name}:{}", value.expose_secret())).collect();
                let Collector { endpoint, service, timeout, attributes, .. } = &collector;
                format!("{endpoint} {service} {timeout:?} {headers:?} {attributes:?}")
            }
        }
    }

    #[test]
    fn a_collector_is_what_the_standard_variables_say() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/");
        for (variables, expected) in [
            (&[][..], "off"),
            (&[base], "http://127.0.0.1:4318/v1/traces locum 10s [] []"),
            (&[base, ("OTEL_SDK_DISABLED", "TRUE")], "off"),
            (&[base, ("OTEL_TRACES_EXPORTER", "none")], "off"),
            (
                &[base, ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c.example/x")],
                "https://c.example/x locum 10s [] []",
            ),
            (
                &[base, ("OTEL_EXPORTER_OTLP_HEADERS", "a=b%20c, d=e"), ("OTEL_SERVICE_NAME", "crew")],
                r#"http://127.0.0.1:4318/v1/traces crew 10s ["a:b c", "d:e"] []"#,
            ),
            (
                &[base, ("OTEL_RESOURCE_ATTRIBUTES", "service.name=s,k=v"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "500")],
                r#"http://127.0.0.1:4318/v1/traces s 500ms [] [("k", "v")]"#,
            ),
            (
                &[("OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4317")],
                "OTEL_EXPORTER_OTLP_ENDPOINT: `127.0.0.1:4317/v1/traces` must begin with http:// or https://",
            ),
            (
                &[base, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
                "OTEL_EXPORTER_OTLP_PROTOCOL: `grpc` is not spoken here; say http/protobuf",
            ),
            (
                &[base, ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")],
                "OTEL_EXPORTER_OTLP_TIMEOUT: `soon` is no number of milliseconds",
            ),
            (&[base, ("OTEL_EXPORTER_OTLP_HEADERS", "key")], "OTEL_EXPORTER_OTLP_HEADERS: write it as name=value"),
        ] {
            assert_eq!(named(variables), expected, "{variables:?}");
        }
    }
}
