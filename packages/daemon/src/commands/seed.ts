import { configPath, type Environment, loadConfig } from '../config/config.ts'
import { writeKey } from '../config/edit.ts'
import { StartError } from '../errors.ts'
import type { Flags } from '../flags.ts'

/**
 * `svcd seed [on|off]`: what the next start will do, or writes it into the configuration; a running daemon is asked by
 * `svc seed` instead. @returns the line to print. @throws StartError
 */
export async function seedCommand(words: readonly string[], flags: Flags, env: Environment): Promise<string> {
  const [word, ...rest] = words
  if ((word !== undefined && word !== 'on' && word !== 'off') || rest.length > 0)
    throw new StartError('usage: svcd seed [on|off]')
  const { file } = configPath(flags, env)
  const config = await loadConfig(flags, env)
  const seed = word === undefined ? config.swarm.seed : word === 'on'
  if (word !== undefined) await writeKey(file, { swarm: { seed } })
  const { enabled } = config.swarm
  if (flags.json) return JSON.stringify({ seed, enabled, file })
  if (flags.quiet) return seed ? 'on' : 'off'
  const what = seed
    ? enabled
      ? 'models are shared'
      : 'nothing is shared: [swarm] enabled = false'
    : 'nothing is shared'
  return `${what}, from the next start of the daemon on ([swarm] seed = ${seed}, ${file})`
}
