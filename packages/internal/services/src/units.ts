import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ServiceError } from './errors.ts'

/** The units of the daemon, those that ask the hub for newer commits, and that of the page. */
export const DAEMON_UNITS = ['svcd.socket', 'svcd.service'] as const
export const TIMER_UNITS = ['svc-outdated.timer', 'svc-outdated.service'] as const
export const PAGE_UNITS = ['svc-ui.service'] as const
type Unit = (typeof DAEMON_UNITS | typeof TIMER_UNITS | typeof PAGE_UNITS)[number]

/** The units of a folder. Both commands begin with an absolute path. @throws ServiceError */
export function systemdUnits(
  svcd: readonly string[],
  svc: readonly string[],
  folder: string
): Readonly<Record<Unit, string>> {
  const unit = (name: Unit, command?: readonly string[]): string =>
    withCommand(readFileSync(join(folder, name), 'utf8'), command)
  return {
    'svcd.service': unit('svcd.service', svcd),
    'svcd.socket': unit('svcd.socket'),
    'svc-outdated.service': unit('svc-outdated.service', [...svc, 'outdated']),
    'svc-outdated.timer': unit('svc-outdated.timer'),
    'svc-ui.service': unit('svc-ui.service', [...svc, 'ui', '--stay', '--no-open'])
  }
}

function withCommand(text: string, [program = '', ...args]: readonly string[] = []): string {
  const words = [programWord(program), ...args.map((arg) => quoted(arg.replaceAll('$', '$$$$')))]
  // a function, because '$' has a meaning in a replacement string.
  return text.replace(/^ExecStart=.*/m, () => `ExecStart=${words.join(' ')}`)
}

/** The first word of `ExecStart=`: variables are not expanded, and quotes and backslashes cannot be escaped. */
function programWord(path: string): string {
  if (/["'\\]/.test(path))
    throw new ServiceError(
      'E_USAGE',
      `systemd cannot start a program whose path contains a quote or a backslash: ${path}`
    )
  return quoted(path)
}

/** A word of `ExecStart=` (systemd.service(5), "Command lines"): `%` is doubled, and quotes are added if needed. */
function quoted(word: string): string {
  const plain = word.replaceAll('%', '%%')
  return /^[\w@%+=:,./$-]+$/.test(plain) ? plain : `"${plain.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}
