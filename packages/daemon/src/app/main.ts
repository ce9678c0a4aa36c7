#!/usr/bin/env node
import { StartError } from '../errors.ts'
import { type Flags, HELP, parseFlags } from '../flags.ts'
import { VERSION } from './version.ts'

const print = (text: string): void => void process.stdout.write(text)

/** Loads each command when it is called: the daemon's modules are slow to import. */
async function main(): Promise<void> {
  process.umask(0o077)
  const { argv, env } = process
  const flags = parseFlags(argv.slice(2))
  if (flags.help) return print(HELP)
  if (flags.version) return print(`svcd ${VERSION}\n`)
  if (flags.check) {
    const { checkConfig } = await import('../commands/check.ts')
    return print(`${(await checkConfig(flags, env)).join('\n')}\n`)
  }
  const [command, ...words] = flags.words
  switch (command) {
    case undefined:
      return (await import('./serve.ts')).serve(flags)
    case 'move':
      return (await import('../commands/move.ts')).moveCommand(words, flags, env)
    case 'restore':
      return (await import('../commands/restore.ts')).restoreCommand(words, flags, env)
    case 'seed':
      return print(`${await (await import('../commands/seed.ts')).seedCommand(words, flags, env)}\n`)
    case 'expect':
      return print(`${await (await import('../commands/expect.ts')).expectCommand(words, flags, env)}\n`)
    case 'metrics':
    case 'health':
    case 'ready': {
      if (words.length > 0) throw new StartError(`svcd ${command} takes no further arguments\ntry: svcd --help`)
      const { askCommand } = await import('../commands/probe.ts')
      return print(await askCommand(command, await socketPath(flags)))
    }
    case 'tag': {
      const { root } = (await (await import('../config/config.ts')).loadConfig(flags)).store
      const { tagCommand } = await import('../commands/tag.ts')
      return tagCommand(words, { root, socketPath: await socketPath(flags), print: (line) => print(`${line}\n`) })
    }
    default:
      throw new StartError(`unknown command ${JSON.stringify(command)}\ntry: svcd --help`)
  }
}

async function socketPath({ socket }: Flags): Promise<string> {
  const { defaultSocketPath } = await import('@svc/client/protocol')
  return socket ?? defaultSocketPath(process.env, process.geteuid?.() ?? 0)
}

main().catch((error: unknown) => {
  const { name, message, stack } = error as Error
  const known = error instanceof StartError || name === 'DaemonError' || name === 'CopyError'
  process.stderr.write(`svcd: ${known ? message : (stack ?? message)}\n`)
  process.exit(error instanceof StartError ? 2 : (process.exitCode ?? 1))
})
