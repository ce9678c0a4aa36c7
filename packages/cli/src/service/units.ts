import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { usage } from '../errors.ts'
import { packageFolder } from './daemon-command.ts'

/** The units of the daemon, those that ask the hub for newer commits, and that of the page. */
export const DAEMON_UNITS = ['svcd.socket', 'svcd.service'] as const
export const TIMER_UNITS = ['svc-outdated.timer', 'svc-outdated.service'] as const
export const PAGE_UNITS = ['svc-ui.service'] as const
type Unit = (typeof DAEMON_UNITS | typeof TIMER_UNITS | typeof PAGE_UNITS)[number]

/** The units of this package. Both commands begin with an absolute path. @throws CliError */
export function systemdUnits(svcd: readonly string[], svc: readonly string[]): Readonly<Record<Unit, string>> {
  return {
    'svcd.service': unit('svcd.service', svcd),
    'svcd.socket': unit('svcd.socket'),
    'svc-outdated.service': unit('svc-outdated.service', [...svc, 'outdated']),
    'svc-outdated.timer': unit('svc-outdated.timer'),
    'svc-ui.service': unit('svc-ui.service', [...svc, 'ui', '--stay', '--no-open'])
  }
}

function unit(name: Unit, [program = '', ...args]: readonly string[] = []): string {
  const text = readFileSync(join(packageFolder(), 'units', name), 'utf8')
  const words = [programWord(program), ...args.map((arg) => quoted(arg.replaceAll('$', '$$$$')))]
  // a function, because '$' has a meaning in a replacement string.
  return text.replace(/^ExecStart=.*/m, () => `ExecStart=${words.join(' ')}`)
}

/** The first word of `ExecStart=`: variables are not expanded, and quotes and backslashes cannot be escaped. */
function programWord(path: string): string {
  if (/["'\\]/.test(path))
    throw usage(`systemd cannot start a program whose path contains a quote or a backslash: ${path}`)
  return quoted(path)
}

/** A word of `ExecStart=` (systemd.service(5), "Command lines"): `%` is doubled, and quotes are added if needed. */
function quoted(word: string): string {
  const plain = word.replaceAll('%', '%%')
  return /^[\w@%+=:,./$-]+$/.test(plain) ? plain : `"${plain.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}
