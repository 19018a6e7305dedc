//! What no command may see, and what the system's directories are.

/// What every program needs to start. What a system does not have is left out.
pub(super) const SYSTEM: [&str; 9] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix"];

/// Secrets of the system. Root owns them, so that nothing but this hides them from a command that root runs.
pub(super) const SECRETS: [&str; 18] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/wireguard",
    "/etc/NetworkManager",
    "/etc/kubernetes",
    "/etc/docker",
    "/etc/letsencrypt",
    "/etc/krb5.keytab",
    "/etc/ipsec.secrets",
    "/etc/ppp",
    "/etc/security/opasswd",
];

/// Devices that hold nothing of the machine. Without a writable `/dev/null` even git fails.
pub(super) const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Where a command finds the whole output of earlier ones.
pub(crate) const OUTPUTS: &str = "/run/locum";
