import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { ConfigError } from '../errors.ts'

/** @throws ConfigError if the environment does not say where it is */
export function homeFolder(): string {
  const home = homedir()
  if (!isAbsolute(home)) throw new ConfigError('the home folder is unknown; set HOME, or SVC_ROOT and SVC_CONFIG')
  return home
}

/**
 * Absolute, or with `~/` below the home folder: other paths would depend on the folder that the daemon is started in.
 * @throws ConfigError that `wrong` makes
 */
export function absolutePath(path: string, key: string, wrong = (what: string) => new ConfigError(what)): string {
  if (isAbsolute(path)) return path
  if (path === '~' || path.startsWith('~/')) return join(homeFolder(), path.slice(1))
  throw wrong(`${key} is "${path}"; write an absolute path, or one that begins with "~/"`)
}
