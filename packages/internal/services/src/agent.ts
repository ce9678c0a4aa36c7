import { existsSync } from 'node:fs'
import { join } from 'node:path'

export const AGENT_LABEL = 'io.svc.svcd'

/** `sun_path` on macOS has 104 bytes, including a NUL. */
export const MAX_MAC_SOCKET_BYTES = 103

/** Not in `$TMPDIR`, where macOS deletes what was untouched for some days, even sockets of running programs. */
export const agentSocketPath = (home: string): string => join(home, 'Library/Application Support/svc/svc.sock')

/**
 * The agent's socket on a Mac with the agent installed, unless a setting names another one: `svc` tries it before the
 * default of all clients (spec http.3).
 */
export function installedAgentSocket(
  env: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform = process.platform
): string | undefined {
  const { SVC_SOCKET: named, HOME: home } = env
  if (platform !== 'darwin' || (named !== undefined && named !== '') || home?.startsWith('/') !== true) return undefined
  return existsSync(agentPath(home)) ? agentSocketPath(home) : undefined
}

export const agentLogPath = (home: string): string => join(home, 'Library/Logs/svcd.log')

export const agentPath = (home: string): string => join(home, 'Library/LaunchAgents', `${AGENT_LABEL}.plist`)

/** The property list of the agent (launchd.plist(5)). The first word of `command` is an absolute path. */
export function agentPlist(command: readonly string[], home: string): string {
  const words = [...command, '--socket', agentSocketPath(home), '--log-format', 'text']
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${AGENT_LABEL}</string>
  <key>ProgramArguments</key>
  <array>
${words.map((word) => `    <string>${xml(word)}</string>`).join('\n')}
  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>10</integer>
  <key>ProcessType</key>
  <string>Standard</string>
  <!-- 077, which a property list can only say in decimal -->
  <key>Umask</key>
  <integer>63</integer>
  <key>SoftResourceLimits</key>
  <dict>
    <key>NumberOfFiles</key>
    <integer>65536</integer>
  </dict>
  <key>StandardErrorPath</key>
  <string>${xml(agentLogPath(home))}</string>
</dict>
</plist>
`
}

const xml = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
