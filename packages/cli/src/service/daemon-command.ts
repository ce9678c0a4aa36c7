import { existsSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isExecutable, programInPath } from '@svc/internal-files'
import { CliError, usage } from '../errors.ts'

/** Options of Node for `svcd`, as in its launchers; `packages/daemon/bin/svcd.cjs` has the reason. */
export const DAEMON_NODE_FLAGS = ['--max-semi-space-size=1'] as const

/** The folder of this package: the nearest one above this file with a package.json. */
export function packageFolder(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) throw new CliError('failed', 'svc cannot find its own package')
  }
}

/**
 * The command that starts the daemon of this `svc`: the given one; else the launcher of the archive that this program
 * runs from, by its path in PATH if it is there, which survives updates; else the package beside this one; else any
 * `svcd` in PATH. @throws CliError when there is none
 */
export function daemonCommand(given: string | undefined, env: Readonly<Record<string, string | undefined>>): string[] {
  if (given !== undefined) {
    const path = resolve(given)
    if (!isExecutable(path)) throw usage(`${path} is not a program that can be run`, 'give --svcd the path of svcd')
    return [path]
  }
  const inPath = programInPath('svcd', env)
  const own = packageFolder()
  // <archive>/lib/svc/node_modules/@svc/cli
  const launcher = resolve(own, '../../../../../bin/svcd')
  if (own.endsWith('/lib/svc/node_modules/@svc/cli') && isExecutable(launcher)) {
    return [inPath !== undefined && realpathSync(inPath) === realpathSync(launcher) ? inPath : launcher]
  }
  const beside = resolve(own, '../daemon/bin/svcd.cjs')
  if (existsSync(beside)) return [process.execPath, ...DAEMON_NODE_FLAGS, beside]
  if (inPath !== undefined) return [inPath]
  throw new CliError('failed', 'the daemon svcd is neither beside svc nor in PATH', {
    hint: 'give --svcd the path of svcd'
  })
}

/** The command with which a service manager starts this program. */
export const clientCommand = (): string[] => [process.execPath, join(packageFolder(), 'bin/svc.cjs')]
