import { join } from 'node:path'
import { CliError } from '../errors.ts'
import { EXIT } from '../exit-codes.ts'
import { contentOf, runProgram, type ServiceManager } from './manager.ts'
import { systemdUnits } from './units.ts'

const UNITS = ['svcd.socket', 'svcd.service'] as const

/** The user's systemd. The socket unit listens at the default path, so clients need no setting. */
export function systemd(command: readonly string[], home: string, env: NodeJS.ProcessEnv): ServiceManager {
  const config = env.XDG_CONFIG_HOME?.startsWith('/') === true ? env.XDG_CONFIG_HOME : join(home, '.config')
  const folder = join(config, 'systemd/user')
  const texts = systemdUnits(command)
  const ctl = (...words: string[]): string[] => ['systemctl', '--user', ...words]
  return {
    name: 'systemd',
    check() {
      const { code, stderr } = runProgram(ctl('show-environment'), env)
      if (code === 0) return
      throw new CliError(EXIT.failed, `systemd does not answer for this user: ${stderr.trim().split('\n')[0]}`, {
        hint: 'without a service manager start the daemon yourself: svcd'
      })
    },
    install: [
      ...UNITS.map((unit) => ({ write: join(folder, unit), content: texts[unit] })),
      { run: ctl('daemon-reload') },
      { run: ctl('enable', ...UNITS) },
      // Replaces an older running daemon; the service requires its socket unit.
      { run: ctl('restart', 'svcd.socket', 'svcd.service') }
    ],
    remove: [
      { run: ctl('disable', '--now', ...UNITS), mayFail: true },
      ...UNITS.map((unit) => ({ remove: join(folder, unit) })),
      { run: ctl('daemon-reload') }
    ],
    state() {
      const installed = UNITS.every((unit) => contentOf(join(folder, unit)) !== undefined)
      const enabled = runProgram(ctl('is-enabled', 'svcd.socket'), env).stdout.trim()
      const active = runProgram(ctl('is-active', 'svcd.service'), env).stdout.trim()
      return {
        installed: installed || enabled !== '',
        enabled: enabled === 'enabled',
        active: active === 'active',
        detail: `svcd.socket is ${enabled || 'unknown'}, svcd.service is ${active || 'unknown'}`
      }
    },
    remarks: ['its log: journalctl --user -u svcd', 'to keep it running after you log out: loginctl enable-linger']
  }
}
