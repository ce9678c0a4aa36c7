#!/usr/bin/env node
import { Output } from '@svc/internal-terminal'
import { LibraryError } from '@svc/library/parts'
import { advised } from '../advice.ts'
import { StartError } from '../errors.ts'
import { type Flags, HELP, parseFlags, SEE_HELP } from '../flags.ts'
import { VERSION } from './version.ts'

const [stdout, stderr] = [Output.stdout(), Output.stderr()]

/** Loads each command when it is called: the daemon's modules are slow to import. */
async function main(): Promise<void> {
  process.umask(0o077)
  const { argv, env } = process
  const flags = parseFlags(argv.slice(2))
  if (flags.help) return stdout.text(HELP)
  if (flags.version) return stdout.line(`svcd ${VERSION}`)
  if (flags.check) {
    const { checkConfig } = await import('../commands/check.ts')
    for (const line of await checkConfig(flags, env)) stdout.line(line)
    return
  }
  const [command, ...words] = flags.words
  // the daemon stops in an orderly way instead
  if (command !== undefined) process.on('uncaughtException', fail)
  switch (command) {
    case undefined:
      return (await import('./serve.ts')).serve(flags)
    case 'move':
      return (await import('../commands/move.ts')).moveCommand(words, flags, env)
    case 'restore':
      return (await import('../commands/restore.ts')).restoreCommand(words, flags, env)
    case 'seed':
      return stdout.line(await (await import('../commands/seed.ts')).seedCommand(words, flags, env))
    case 'expect':
      return stdout.line(await (await import('../commands/expect.ts')).expectCommand(words, flags, env))
    case 'metrics':
    case 'health':
    case 'ready': {
      if (words.length > 0) throw new StartError(`svcd ${command} takes no further arguments`, SEE_HELP)
      const { askCommand } = await import('../commands/probe.ts')
      return stdout.text(await askCommand(command, await socketPath(flags)))
    }
    case 'tag': {
      const { store } = await (await import('../config/config.ts')).loadConfig(flags)
      const { tagCommand } = await import('../commands/tag.ts')
      return tagCommand(words, { store, socketPath: await socketPath(flags), print: (line) => stdout.line(line) })
    }
    default:
      throw new StartError(`unknown command ${JSON.stringify(command)}`, SEE_HELP)
  }
}

async function socketPath({ socket }: Flags): Promise<string> {
  const { defaultSocketPath } = await import('@svc/client/protocol')
  return socket ?? defaultSocketPath(process.env, process.geteuid?.() ?? 0)
}

function fail(error: unknown): never {
  if (error instanceof LibraryError) stderr.line(`svcd: ${advised(error)}`)
  else if (error instanceof StartError) stderr.line(`svcd: ${error.message}`)
  else stderr.defect('svcd', error)
  if (error instanceof StartError && error.hint !== undefined) stderr.line(`try: ${error.hint}`)
  process.exit(error instanceof StartError ? 2 : (process.exitCode ?? 1))
}

main().catch(fail)
