import { join } from 'node:path'
import { ServiceError } from './errors.ts'
import { contentOf, runProgram, type ServiceManager } from './manager.ts'
import { DAEMON_UNITS, PAGE_UNITS, systemdUnits, TIMER_UNITS } from './units.ts'

const ALL_UNITS = [...DAEMON_UNITS, ...TIMER_UNITS, ...PAGE_UNITS] as const

/**
 * The user's systemd. The socket unit listens at the default path, so clients need no setting. The timer that looks for
 * newer commits, and the page, are installed, but off. `templates` is the folder of the units, to which the commands are added.
 */
export function systemd(
  svcd: readonly string[],
  svc: readonly string[],
  home: string,
  env: NodeJS.ProcessEnv,
  templates: string
): ServiceManager {
  const config = env.XDG_CONFIG_HOME?.startsWith('/') === true ? env.XDG_CONFIG_HOME : join(home, '.config')
  const folder = join(config, 'systemd/user')
  const texts = systemdUnits(svcd, svc, templates)
  const ctl = (...words: string[]): string[] => ['systemctl', '--user', ...words]
  return {
    name: 'systemd',
    check() {
      const { code, stderr } = runProgram(ctl('show-environment'), env)
      if (code === 0) return
      throw new ServiceError('E_FAILED', `systemd does not answer for this user: ${stderr.trim().split('\n')[0]}`, {
        hint: 'without a service manager start the daemon yourself: svcd'
      })
    },
    install: [
      ...ALL_UNITS.map((unit) => ({ write: join(folder, unit), content: texts[unit] })),
      { run: ctl('daemon-reload') },
      { run: ctl('enable', ...DAEMON_UNITS) },
      // replaces an older running daemon; the service requires its socket unit.
      { run: ctl('restart', 'svcd.socket', 'svcd.service') }
    ],
    remove: [
      { run: ctl('disable', '--now', 'svc-outdated.timer', ...PAGE_UNITS), mayFail: true },
      { run: ctl('disable', '--now', ...DAEMON_UNITS), mayFail: true },
      ...ALL_UNITS.map((unit) => ({ remove: join(folder, unit) })),
      { run: ctl('daemon-reload') }
    ],
    start: [{ run: ctl('start', ...DAEMON_UNITS) }],
    // the socket would start it again at the next request
    stop: [{ run: ctl('stop', ...DAEMON_UNITS) }],
    state() {
      const installed = DAEMON_UNITS.every((unit) => contentOf(join(folder, unit)) !== undefined)
      const enabled = runProgram(ctl('is-enabled', 'svcd.socket'), env).stdout.trim()
      const active = runProgram(ctl('is-active', 'svcd.service'), env).stdout.trim()
      return {
        installed: installed || enabled !== '',
        enabled: enabled === 'enabled',
        active: active === 'active',
        detail: `svcd.socket is ${enabled || 'unknown'}, svcd.service is ${active || 'unknown'}`
      }
    },
    remarks: [
      'its log: journalctl --user -u svcd',
      'to look for newer versions of models once a day: systemctl --user enable --now svc-outdated.timer',
      'to keep the page of svc ui open at an address that stays: systemctl --user enable --now svc-ui.service',
      'to keep it running after you log out: loginctl enable-linger'
    ]
  }
}
