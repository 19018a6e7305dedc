//! The same attacks where they would work: in a network namespace in which every address leads to this machine.

use std::io;
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket};

use super::attacks::{ask_all, canary, forms, name_hidden};
use super::testing::TestNetwork;
use super::{Address, Ask, Client, Dialer, Reach};

/// Set for the process inside.
const INSIDE: &str = "LOCUM_TEST_INSIDE_NAMESPACE";
const NAME: &str = "web::namespace::where_every_address_answers_no_hidden_one_is_asked";

#[test]
fn where_every_address_answers_no_hidden_one_is_asked() {
    if std::env::var_os(INSIDE).is_some() {
        lead_everything_here().unwrap();
        println!("the namespace stands");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(attack());
    }
    let arguments = ["--user", "--map-root-user", "--net", "--"];
    let inside = std::env::current_exe().unwrap();
    let mut run = Command::new("unshare");
    run.args(arguments).arg(inside).args([NAME, "--exact", "--nocapture"]).env(INSIDE, "1");
    let output = match run.output() {
        Ok(output) => output,
        Err(error) => return println!("not shown, unshare is missing: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if !said.contains("the namespace stands") {
        return println!("not shown, there are no namespaces: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

async fn attack() {
    // It hears IPv4 too.
    let (canary, touched) = canary("[::]:0".parse().unwrap()).await;
    let (port, touched) = (canary.port(), || touched.load(Ordering::SeqCst));
    let network = Arc::new(TestNetwork::default());
    let client = Client::new(Dialer::default().over(Arc::clone(&network) as Arc<_>));
    let forms: Vec<String> = forms(port).into_iter().filter(|form| !form.contains("LATER")).collect();
    assert!(forms.len() >= 200, "{}", forms.len());
    name_hidden(&network);
    ask_all(&client, &forms, Reach::Public).await;
    assert_eq!((touched(), network.dialled()), (0, Vec::new()));
    // A public address is reached, or nothing was shown.
    ask_all(&client, &[format!("http://1.1.1.1:{port}/"), format!("http://[2606:4700::1]:{port}/")], Reach::Public)
        .await;
    assert_eq!(touched(), 2);
    ask_all(&client, &forms, Reach::Anywhere).await;
    assert!(touched() > 60, "without the judgement hidden addresses are asked: {}", touched());
    let hidden = Address::parse(&format!("http://169.254.169.254:{port}/latest")).unwrap();
    assert!(client.ask(&Ask::page(hidden)).await.unwrap_err().contains("link-local"));
}

/// Brings the one interface up and makes every address one of this machine.
fn lead_everything_here() -> io::Result<()> {
    const NEW_LINK: u16 = 16;
    const NEW_ROUTE: u16 = 24;
    let up = [&[0, 0, 0, 0][..], &1i32.to_ne_bytes(), &1u32.to_ne_bytes(), &1u32.to_ne_bytes()].concat();
    tell_kernel(NEW_LINK, &up)?;
    for (family, scope) in [(2u8, 254u8), (10, 0)] {
        // A route of the table `local` (255), of the type `local` (2), to everything, by the interface 1.
        let route = [family, 0, 0, 0, 255, 4, scope, 2, 0, 0, 0, 0];
        let interface = [&8u16.to_ne_bytes()[..], &4u16.to_ne_bytes(), &1u32.to_ne_bytes()].concat();
        tell_kernel(NEW_ROUTE, &[&route[..], &interface].concat())?;
    }
    Ok(())
}

fn tell_kernel(kind: u16, body: &[u8]) -> io::Result<()> {
    // Request, acknowledge, create.
    let flags: u16 = 0x1 | 0x4 | 0x400;
    let length = u32::try_from(16 + body.len()).unwrap();
    let head = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 8]].concat();
    let line = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, Some(SockProtocol::NetlinkRoute))?;
    sendto(line.as_raw_fd(), &[head, body.to_vec()].concat(), &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let mut answer = [0; 4096];
    recv(line.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    let code = i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]);
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) }
}
