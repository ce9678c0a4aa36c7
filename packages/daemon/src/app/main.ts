#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8'
import { StartError } from '../errors.ts'
import { HELP, parseFlags } from './flags.ts'
import { VERSION } from './version.ts'

// Young generations of 3 MiB: by default each of a dozen threads may grow its own to 48 MiB, and keep it.
setFlagsFromString('--max-semi-space-size=1')

/** Load each subcommand lazily: the daemon's modules are slow to import. */
async function main(): Promise<void> {
  process.umask(0o077)
  const flags = parseFlags(process.argv.slice(2))
  if (flags.help) return void process.stdout.write(HELP)
  if (flags.version) return void process.stdout.write(`svcd ${VERSION}\n`)
  if (flags.check) {
    const { checkConfig } = await import('./check.ts')
    return void process.stdout.write(`${(await checkConfig(flags, process.env)).join('\n')}\n`)
  }
  const [command, ...words] = flags.words
  if (command === undefined) return (await import('./serve.ts')).serve(flags)
  if (command === 'move') return (await import('./move-command.ts')).moveCommand(words, flags, process.env)
  if (command !== 'tag') throw new StartError(`unknown command ${JSON.stringify(command)}\ntry: svcd --help`)
  const { loadConfig } = await import('../config/config.ts')
  const { defaultSocketPath } = await import('@svc/client/protocol')
  const config = await loadConfig(flags)
  const socketPath = flags.socket ?? defaultSocketPath(process.env, process.geteuid?.() ?? 0)
  const { tagCommand } = await import('./tag-command.ts')
  await tagCommand(words, {
    root: config.store.root,
    socketPath,
    print: (line) => void process.stdout.write(`${line}\n`)
  })
}

main().catch((error: unknown) => {
  const { name, message, stack } = error as Error
  const known = error instanceof StartError || name === 'DaemonError' || name === 'MoveError'
  process.stderr.write(`svcd: ${known ? message : (stack ?? message)}\n`)
  process.exit(error instanceof StartError ? 2 : 1)
})
