//! Which addresses are those of the public internet. Everything that is not known to be is not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks of IPv4 that are not public: the address, the bits that count, and what they are.
const RESERVED_V4: [(Ipv4Addr, u32, &str); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "a provider's own"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "this machine"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "a metadata service"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "reserved"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "for documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "for measurements"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "for documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "for documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

/// Networks within the part of IPv6 that is in public use which are not public.
const RESERVED_V6: [(Ipv6Addr, u32, &str); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "reserved or tunnelled"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "for documentation"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "tunnelled"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "for documentation"),
];

/// The part of IPv6 that is in public use.
const PUBLIC_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Where networks without IPv4 show the hosts that have only that (NAT64).
const TRANSLATED: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// What an address is if it is not public.
pub(crate) fn objection(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => objection_v4(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => objection_v4(mapped),
            None => objection_v6(address),
        },
    }
}

fn objection_v4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    let holds = |network: Ipv4Addr, length: u32| (bits ^ network.to_bits()) >> (32 - length) == 0;
    RESERVED_V4.iter().find(|(network, length, _)| holds(*network, *length)).map(|(_, _, what)| *what)
}

fn objection_v6(address: Ipv6Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    let holds = |network: Ipv6Addr, length: u32| (bits ^ network.to_bits()) >> (128 - length) == 0;
    if holds(TRANSLATED.0, TRANSLATED.1) {
        // Its last 32 bits are the address of the host.
        return objection_v4(Ipv4Addr::from_bits((bits & u128::from(u32::MAX)) as u32));
    }
    if address.is_loopback() {
        return Some("this machine");
    }
    if !holds(PUBLIC_V6.0, PUBLIC_V6.1) {
        return Some("not of the public internet");
    }
    RESERVED_V6.iter().find(|(network, length, _)| holds(*network, *length)).map(|(_, _, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_told_from_all_others() {
        for (text, expected) in [
            ("1.1.1.1", None),
            ("9.255.255.255", None),
            ("11.0.0.0", None),
            ("100.63.255.255", None),
            ("100.128.0.0", None),
            ("172.15.255.255", None),
            ("172.32.0.0", None),
            ("192.167.255.255", None),
            ("223.255.255.255", None),
            ("0.0.0.0", Some("this network")),
            ("10.255.255.255", Some("private")),
            ("100.100.100.200", Some("a provider's own")),
            ("127.255.0.1", Some("this machine")),
            ("168.63.129.16", Some("a metadata service")),
            ("169.254.169.254", Some("link-local")),
            ("172.31.255.255", Some("private")),
            ("192.0.0.192", Some("reserved")),
            ("198.19.0.1", Some("for measurements")),
            ("239.1.1.1", Some("multicast")),
            ("255.255.255.255", Some("reserved")),
            ("2606:4700::1111", None),
            ("2001:4860:4860::8888", None),
            ("::ffff:8.8.8.8", None),
            ("::ffff:10.0.0.1", Some("private")),
            ("64:ff9b::808:808", None),
            ("64:ff9b::a00:1", Some("private")),
            ("64:ff9b:1::808:808", Some("not of the public internet")),
            ("::", Some("not of the public internet")),
            ("::1", Some("this machine")),
            ("::8.8.8.8", Some("not of the public internet")),
            ("fe80::1", Some("not of the public internet")),
            ("fec0::1", Some("not of the public internet")),
            ("fd00:ec2::254", Some("not of the public internet")),
            ("ff02::1", Some("not of the public internet")),
            ("100::1", Some("not of the public internet")),
            ("2001::1", Some("reserved or tunnelled")),
            ("2001:db8::1", Some("for documentation")),
            ("2002:a00:1::", Some("tunnelled")),
            ("3fff::1", Some("for documentation")),
        ] {
            assert_eq!(objection(text.parse().unwrap()), expected, "{text}");
        }
    }
}
