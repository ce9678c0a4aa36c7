#!/usr/bin/env node
import { StartError } from '../errors.ts'
import { HELP, parseFlags } from '../flags.ts'
import { VERSION } from './version.ts'

/** Load each subcommand lazily: the daemon's modules are slow to import. */
async function main(): Promise<void> {
  process.umask(0o077)
  const flags = parseFlags(process.argv.slice(2))
  if (flags.help) return void process.stdout.write(HELP)
  if (flags.version) return void process.stdout.write(`svcd ${VERSION}\n`)
  if (flags.check) {
    const { checkConfig } = await import('../commands/check.ts')
    return void process.stdout.write(`${(await checkConfig(flags, process.env)).join('\n')}\n`)
  }
  const [command, ...words] = flags.words
  if (command === undefined) return (await import('./serve.ts')).serve(flags)
  if (command === 'move') return (await import('../commands/move.ts')).moveCommand(words, flags, process.env)
  if (command === 'restore') return (await import('../commands/restore.ts')).restoreCommand(words, flags, process.env)
  if (command === 'seed') {
    const { seedCommand } = await import('../commands/seed.ts')
    return void process.stdout.write(`${await seedCommand(words, flags, process.env)}\n`)
  }
  if (command === 'expect') {
    const { expectCommand } = await import('../commands/expect.ts')
    return void process.stdout.write(`${await expectCommand(words, flags, process.env)}\n`)
  }
  if (command === 'metrics' || command === 'health' || command === 'ready') {
    if (words.length > 0) throw new StartError(`svcd ${command} takes no further arguments\ntry: svcd --help`)
    const { defaultSocketPath } = await import('@svc/client/protocol')
    const { askCommand } = await import('../commands/probe.ts')
    const path = flags.socket ?? defaultSocketPath(process.env, process.geteuid?.() ?? 0)
    return void process.stdout.write(await askCommand(command, path))
  }
  if (command !== 'tag') throw new StartError(`unknown command ${JSON.stringify(command)}\ntry: svcd --help`)
  const { loadConfig } = await import('../config/config.ts')
  const { defaultSocketPath } = await import('@svc/client/protocol')
  const config = await loadConfig(flags)
  const socketPath = flags.socket ?? defaultSocketPath(process.env, process.geteuid?.() ?? 0)
  const { tagCommand } = await import('../commands/tag.ts')
  await tagCommand(words, {
    root: config.store.root,
    socketPath,
    print: (line) => void process.stdout.write(`${line}\n`)
  })
}

main().catch((error: unknown) => {
  const { name, message, stack } = error as Error
  const known = error instanceof StartError || name === 'DaemonError' || name === 'CopyError'
  process.stderr.write(`svcd: ${known ? message : (stack ?? message)}\n`)
  process.exit(error instanceof StartError ? 2 : (process.exitCode ?? 1))
})
