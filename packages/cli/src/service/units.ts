import { usage } from '../errors.ts'

/** The units of the daemon, and those that ask the hub for newer commits. */
export const DAEMON_UNITS = ['svcd.socket', 'svcd.service'] as const
export const TIMER_UNITS = ['svc-outdated.timer', 'svc-outdated.service'] as const
type Unit = (typeof DAEMON_UNITS | typeof TIMER_UNITS)[number]

/**
 * The units in systemd/user, for a daemon that is started by `svcd`, and a client that is started by `svc`: absolute paths, optionally
 * with arguments. @throws CliError
 */
export function systemdUnits(svcd: readonly string[], svc: readonly string[]): Readonly<Record<Unit, string>> {
  return {
    'svcd.service': withCommand(SERVICE, svcd),
    'svcd.socket': SOCKET,
    'svc-outdated.service': withCommand(OUTDATED, [...svc, 'outdated']),
    'svc-outdated.timer': TIMER
  }
}

function withCommand(unit: string, [program = '', ...args]: readonly string[]): string {
  const words = [programWord(program), ...args.map((arg) => quoted(arg.replaceAll('$', '$$$$')))]
  // A function, because '$' has a meaning in a replacement string.
  return unit.replace('@COMMAND@', () => words.join(' '))
}

/**
 * The first word of `ExecStart=`, in which variables are not expanded, and quotes and backslashes cannot be escaped.
 */
function programWord(path: string): string {
  if (/["'\\]/.test(path)) throw usage(`systemd starts no program whose path holds a quote or a backslash: ${path}`)
  return quoted(path)
}

/** A word of `ExecStart=` (systemd.service(5), "Command lines"): `%` is doubled, and quotes are added if needed. */
function quoted(word: string): string {
  const plain = word.replaceAll('%', '%%')
  return /^[\w@%+=:,./$-]+$/.test(plain) ? plain : `"${plain.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

const SERVICE = `# For one person: systemctl --user enable --now svcd.socket
[Unit]
Description=Local store of machine learning models
Requires=svcd.socket
After=svcd.socket

[Service]
Type=exec
ExecStart=@COMMAND@
Restart=on-failure
RestartSec=2
# 2 is a wrong flag or configuration: trying again would not help.
RestartPreventExitStatus=2
# SIGTERM ends running jobs with E_ABORTED; what they verified is kept for the next try.
TimeoutStopSec=60
UMask=0077
LimitNOFILE=65536

# A user's manager cannot make mount namespaces everywhere, so the file system is not narrowed here.
# MemoryDenyWriteExecute= would break the JavaScript engine.
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictNamespaces=yes
# Netlink is how the C library lists the network interfaces, which the addresses that are shared come from.
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM

[Install]
WantedBy=default.target
Also=svcd.socket
`

const SOCKET = `[Unit]
Description=Socket of the local model store

[Socket]
ListenStream=%t/svc-%U/svc.sock
SocketMode=0600
DirectoryMode=0700

[Install]
WantedBy=sockets.target
`

const OUTDATED = `# Asks the hub for newer commits of what is here: systemctl --user enable --now svc-outdated.timer
[Unit]
Description=Ask the model hub for newer commits
Requires=svcd.socket
After=svcd.socket

[Service]
Type=oneshot
ExecStart=@COMMAND@
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictNamespaces=yes
RestrictAddressFamilies=AF_UNIX
SystemCallArchitectures=native
`

const TIMER = `[Unit]
Description=Ask the model hub for newer commits once a day

[Timer]
OnCalendar=daily
RandomizedDelaySec=6h
Persistent=yes

[Install]
WantedBy=timers.target
`
