//! Loopback ports for servers that must come back on the same port after a kill.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

/// Below the range from which the kernel takes the source ports of outgoing connections (32768 up).
/// A port from `bind(0)` lies in it, and while a server is down between a kill and a restart any
/// client on the machine could be given its port.
const FIRST: u32 = 20_000;
const COUNT: u32 = 12_000;

/// Ports of this range that programs use by custom; a developer's own may be there.
const STANDARD: [u16; 4] = [25_672, 26_379, 27_017, 28_015];

static TAKEN: AtomicU32 = AtomicU32::new(0);

/// A free TCP port of 127.0.0.1, never given twice by this process. Another process may still take
/// it before the server does, so a start that fails is tried with a new one.
///
/// # Errors
/// When every port of the range is in use.
pub fn free() -> Result<u16> {
    // Test binaries run one after the other with neighbouring ids; each begins elsewhere.
    let start = process::id().wrapping_mul(2_654_435_761) >> 8;
    (0..COUNT)
        .find_map(|_| {
            let n = start.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
            let port = u16::try_from(FIRST + n % COUNT).ok()?;
            let free =
                !STANDARD.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
            free.then_some(port)
        })
        .context("no port of 127.0.0.1 from 20000 to 31999 is free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_no_port_twice() {
        let (a, b) = (free().unwrap(), free().unwrap());
        assert_ne!(a, b);
    }

    #[test]
    fn passes_over_a_port_in_use() {
        let port = free().unwrap();
        let _held = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        // One whole round over the range would meet the held port again.
        assert!((0..300).all(|_| free().unwrap() != port));
    }
}
