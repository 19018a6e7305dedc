//! Ways to write, name or lead to an address that is not public: none of them may be dialled.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::TcpListener;

use super::testing::{TestNetwork, server};
use super::{Address, Ask, Client, Dialer, Reach};

/// Addresses of IPv4 that nobody may reach.
const HIDDEN: [[u8; 4]; 13] = [
    [127, 0, 0, 1],
    [127, 8, 9, 10],
    [0, 0, 0, 0],
    [10, 0, 0, 5],
    [172, 16, 3, 4],
    [172, 31, 255, 254],
    [192, 168, 1, 1],
    [169, 254, 169, 254],
    [100, 64, 0, 1],
    [100, 100, 100, 200],
    [168, 63, 129, 16],
    [192, 0, 0, 192],
    [198, 18, 0, 1],
];

/// The same of IPv6.
const HIDDEN_V6: [&str; 12] = [
    "::1",
    "::",
    "fe80::1",
    "fec0::1",
    "fd00:ec2::254",
    "fc00::1",
    "ff02::1",
    "2001:db8::1",
    "2001::1",
    "100::1",
    "3fff::1",
    "64:ff9b:1::1",
];

/// Every way in which this address is written, as a host.
fn spellings([a, b, c, d]: [u8; 4]) -> Vec<String> {
    let v4 = Ipv4Addr::new(a, b, c, d);
    let number = v4.to_bits();
    let (low, lower) = (u32::from(c) << 8 | u32::from(d), number & 0x00ff_ffff);
    let [high, low16] = [(number >> 16) as u16, number as u16];
    let embedded = |bits: [u16; 6]| {
        let [e, f, g, h, i, j] = bits;
        format!("[{}]", Ipv6Addr::new(e, f, g, h, i, j, high, low16))
    };
    vec![
        format!("{a}.{b}.{c}.{d}"),
        format!("{a}.{b}.{c}.{d}."),
        format!("{number}"),
        format!("{number:#x}"),
        format!("{number:#o}").replace("0o", "0"),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("000{a}.{b}.{c}.{d}"),
        format!("{a}.{b}.{low}"),
        format!("{a}.{lower}"),
        format!("{a:#X}.{b}.{c}.0{d:o}"),
        format!("{a}%2e{b}%2e{c}%2e{d}"),
        format!("{a}。{b}。{c}。{d}"),
        format!("{a}.{b}.{c}.{d}").chars().map(fullwidth).collect(),
        format!("{a}.{b}.{c}.{d}@public.example"),
        format!("public.example@{a}.{b}.{c}.{d}"),
        format!("public.example:80@{a}.{b}.{c}.{d}"),
        format!("[::ffff:{v4}]"),
        format!("[0:0:0:0:0:ffff:{high:x}:{low16:x}]"),
        format!("[::{v4}]"),
        format!("[64:ff9b::{v4}]"),
        embedded([0x64, 0xff9b, 1, 0, 0, 0]),
        format!("[{}]", Ipv6Addr::new(0x2002, high, low16, 0, 0, 0, 0, 1)),
        format!("[{}]", Ipv6Addr::new(0x2001, 0, 0x4136, 0xe378, 0x8000, 0x63bf, !high, !low16)),
        format!("[::ffff:{v4}%25lo]"),
        format!("[{v4}]"),
        format!("hidden-{number}.example"),
        format!("half-hidden-{number}.example"),
        format!("hidden-{number}.example."),
        format!("mapped-{number}.example"),
        format!("LATER-{number}.example"),
    ]
}

fn fullwidth(char: char) -> char {
    char::from_u32(u32::from(char) + 0xfee0).filter(|_| char.is_ascii_digit()).unwrap_or(char)
}

/// Addresses that lead there by other means.
fn other_forms(port: u16) -> Vec<String> {
    let hosts = [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "localhost.localdomain",
        "ip6-localhost",
        "metadata",
        "metadata.google.internal",
        "instance-data",
        "instance-data.ec2.internal",
        "host.docker.internal",
        "kubernetes.default.svc.cluster.local",
        "router.lan",
        "printer.local",
        "intranet",
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
        "localhost%00.public.example",
        "127.0.0.1\t",
        "127.0.0.1\\@public.example",
        "public.example\\@127.0.0.1",
        "[::1%25lo]",
        "[::1",
        "[0:0:0:0:0:0:0:1]",
        "[::0001]",
    ];
    let mut forms: Vec<String> = hosts.iter().map(|host| format!("http://{host}:{port}/")).collect();
    forms.extend(HIDDEN_V6.iter().map(|host| format!("http://[{host}]:{port}/")));
    forms.extend(["http:127.0.0.1", "http:/127.0.0.1/", "//127.0.0.1/", "http:\\\\127.0.0.1\\"].map(str::to_owned));
    forms.extend(["file:///etc/passwd", "gopher://127.0.0.1/", "ftp://127.0.0.1/", "unix:///run/x"].map(str::to_owned));
    forms.push(format!("http://127.0.0.1:{port}#@public.example/"));
    forms.push(format!("http://127.0.0.1:{port}?@public.example/"));
    forms
}

/// Every form, all with this port.
pub(super) fn forms(port: u16) -> Vec<String> {
    let spelled = HIDDEN.iter().flat_map(|address| spellings(*address));
    let mut forms: Vec<String> = spelled.map(|host| format!("http://{host}:{port}/latest")).collect();
    forms.extend(other_forms(port));
    forms
}

/// What the names in the forms lead to.
pub(super) fn name_hidden(network: &TestNetwork) {
    for [a, b, c, d] in HIDDEN {
        let v4 = Ipv4Addr::new(a, b, c, d);
        let (number, hidden, mapped) = (v4.to_bits(), v4.to_string(), v4.to_ipv6_mapped().to_string());
        network.name(&format!("hidden-{number}.example"), &[&[&hidden]]);
        network.name(&format!("half-hidden-{number}.example"), &[&["1.1.1.1", &hidden]]);
        network.name(&format!("mapped-{number}.example"), &[&[&mapped]]);
        // Public at the first look, for whoever looks once to judge and once more to connect.
        network.name(&format!("later-{number}.example"), &[&["1.1.1.1"], &[&hidden]]);
    }
    for name in ["localhost", "ip6-localhost", "metadata", "intranet", "instance-data"] {
        network.name(name, &[&["127.0.0.1"]]);
    }
}

/// Listens where nobody may connect to, counts who does, and hangs up.
pub(super) async fn canary(address: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let touched = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&touched);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, touched)
}

/// Asks for each form, as a tool or as somebody who does not judge.
pub(super) async fn ask_all(client: &Client, forms: &[String], reach: Reach) {
    for form in forms {
        if let Ok(address) = Address::parse(form) {
            // What matters is whether it was dialled.
            client.ask(&Ask { reach, ..Ask::page(address) }).await.ok();
        }
    }
}

fn is_hidden(address: &SocketAddr) -> bool {
    super::public::objection(address.ip()).is_some()
}

#[tokio::test]
async fn no_form_of_a_hidden_address_is_dialled() {
    let (canary, touched) = canary("127.0.0.1:0".parse().unwrap()).await;
    let public = server(&[("/latest", "200 OK\n\npublic")]).await;
    let network = Arc::new(TestNetwork::leading_to(public));
    name_hidden(&network);
    let client = Client::new(Dialer::default().over(Arc::clone(&network) as Arc<_>));
    let forms = forms(canary.port());
    assert!(forms.len() >= 200, "{}", forms.len());
    // Twice: at the second look the names that wait have changed.
    for _ in 0..2 {
        ask_all(&client, &forms, Reach::Public).await;
    }
    let dialled = network.dialled();
    assert_eq!(dialled.iter().find(|address| is_hidden(address)), None);
    assert_eq!(dialled.len(), HIDDEN.len(), "only the names that are still public are asked");
    assert_eq!(touched.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn without_the_judgement_the_canaries_are_touched() {
    let (canary, touched) = canary("127.0.0.1:0".parse().unwrap()).await;
    let network = Arc::new(TestNetwork::default());
    name_hidden(&network);
    let client = Client::new(Dialer::default().over(Arc::clone(&network) as Arc<_>));
    let loopback = |form: &String| form.contains("//127.0.0.1") || form.contains("-2130706433.");
    let forms: Vec<String> = forms(canary.port()).into_iter().filter(loopback).collect();
    ask_all(&client, &forms, Reach::Anywhere).await;
    let dialled = network.dialled();
    assert!(dialled.iter().filter(|address| is_hidden(address)).count() >= 5, "{dialled:?}");
    assert!(touched.load(Ordering::SeqCst) >= 5);
}

#[tokio::test]
async fn each_redirect_is_judged() {
    let (canary, touched) = canary("127.0.0.1:0".parse().unwrap()).await;
    for form in forms(canary.port()) {
        // What no header can hold cannot lead anywhere.
        if form.contains(|char: char| char.is_control()) {
            continue;
        }
        let public = server(&[("/", &format!("302 Found\nLocation: {form}\n\n"))]).await;
        let network = Arc::new(TestNetwork::leading_to(public));
        name_hidden(&network);
        network.name("public.example", &[&["1.1.1.1"]]);
        let client = Client::new(Dialer::default().over(Arc::clone(&network) as Arc<_>));
        let first = Address::parse("http://public.example/").unwrap();
        let answer = client.ask(&Ask::page(first.clone())).await.unwrap();
        let Some(Ok(next)) = answer.location().map(|location| first.join(location)) else { continue };
        client.ask(&Ask::page(next)).await.ok();
        assert_eq!(network.dialled().iter().find(|address| is_hidden(address)), None, "{form}");
    }
    assert_eq!(touched.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_name_that_changes_its_mind_is_judged_at_each_connection() {
    let public = server(&[("/", "302 Found\nLocation: /again\n\n"), ("/again", "200 OK\n\ntext")]).await;
    let network = Arc::new(TestNetwork::leading_to(public));
    let client = Client::new(Dialer::default().over(Arc::clone(&network) as Arc<_>));
    network.name("rebinding.example", &[&["1.1.1.1"], &["169.254.169.254"]]);
    let first = Address::parse("http://rebinding.example/").unwrap();
    let answer = client.ask(&Ask::page(first.clone())).await.unwrap();
    let next = first.join(answer.location().unwrap()).unwrap();
    let error = client.ask(&Ask::page(next)).await.unwrap_err();
    assert_eq!(
        error,
        "rebinding.example leads to 169.254.169.254, which is link-local; only the public internet can be reached"
    );
    assert_eq!(network.dialled(), [SocketAddr::new(IpAddr::from([1, 1, 1, 1]), 80)]);
}

#[tokio::test]
async fn behind_a_proxy_what_is_known_is_judged_and_the_rest_is_the_proxys() {
    let proxy = server(&[]).await;
    let settings = locum_models::http::Proxy {
        https_proxy: Some(format!("http://somebody:word@{proxy}")),
        no_proxy: Some("direct.example".to_owned()),
    };
    let network = Arc::new(TestNetwork::default());
    network.name("inside.example", &[&["10.0.0.1"]]);
    network.name("direct.example", &[&["10.0.0.1"]]);
    network.name("known.example", &[&["1.1.1.1"]]);
    let dialer = Dialer::new(settings, None).over(Arc::clone(&network) as Arc<_>);
    let client = Client::new(dialer);
    for (url, why, reaches_proxy) in [
        ("https://10.0.0.1/", "10.0.0.1 is private", false),
        ("https://[::1]/", "[::1] is this machine", false),
        ("https://inside.example/", "inside.example leads to 10.0.0.1", false),
        ("https://direct.example/", "direct.example leads to 10.0.0.1", false),
        ("https://metadata/", "not a name of the public internet", false),
        ("https://known.example/", "did not let known.example:443 through: HTTP/1.1 404 Not Found", true),
        ("https://unknown.example/", "did not let unknown.example:443 through", true),
    ] {
        let error = client.ask(&Ask::page(Address::parse(url).unwrap())).await.unwrap_err();
        assert!(error.contains(why), "{url}: {error}");
        let expected: &[SocketAddr] = if reaches_proxy { &[proxy] } else { &[] };
        assert_eq!(network.dialled(), expected, "{url}");
    }
}
