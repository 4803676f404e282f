#!/usr/bin/env bash
# Install the system packages that the tests need and the machine lacks (as root or with sudo); otherwise say which.
set -euo pipefail
need=()
command -v sshd >/dev/null || [ -x /usr/sbin/sshd ] || need+=(openssh-server)
command -v ssh-keygen >/dev/null || need+=(openssh-client)
# Words must survive every login shell that a host may have.
for shell in zsh fish tcsh ksh; do
    command -v "$shell" >/dev/null || need+=("$shell")
done
[ ${#need[@]} -eq 0 ] && exit 0
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
        echo "error: the tests need these packages: ${need[*]}" >&2
        echo " next: install them (Debian, Ubuntu: sudo apt-get install ${need[*]}), then run make test again" >&2
        exit 1
    fi
    as_root=(sudo -n)
fi
if ! command -v apt-get >/dev/null; then
    echo "error: the tests need ${need[*]}, and this machine has no apt-get" >&2
    echo " next: install them with this machine's package manager, then run make test again" >&2
    exit 1
fi
echo "installing ${need[*]} for the tests" >&2
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${need[@]}" >/dev/null
