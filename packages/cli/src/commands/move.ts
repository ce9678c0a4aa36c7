import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { CliError } from '../errors.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { installedAgentSocket } from '../service/agent.ts'
import { daemonCommand } from '../service/daemon-command.ts'
import type { Session } from '../session.ts'
import { runningVersion } from '../versions.ts'

const ENDS: Readonly<Record<number, ExitCode>> = { 2: EXIT.usage, 130: EXIT.interrupted }

/**
 * `svc move DIR` runs `svcd move DIR`, a process that holds the locks of both stores. It does not stop a running
 * daemon, which may be fetching or sharing a model. @throws CliError
 */
export async function move(session: Session, dir: string, options: { readonly svcd?: string }): Promise<void> {
  const { terminal, json, quiet, signal } = session
  await refuseBesideDaemon(session)
  signal.throwIfAborted()
  const [program, ...args] = daemonCommand(options.svcd, terminal.env)
  const words = ['move', resolve(terminal.cwd, dir), ...(json ? ['--json'] : []), ...(quiet ? ['--quiet'] : [])]
  const child = spawn(program!, [...args, ...words], {
    cwd: terminal.cwd,
    env: terminal.env as NodeJS.ProcessEnv,
    // on a terminal it draws its own progress bar
    stdio: ['ignore', 'pipe', !json && terminal.stderr === process.stderr ? 'inherit' : 'pipe']
  })
  const stop = (): void => void child.kill('SIGINT')
  signal.addEventListener('abort', stop, { once: true })
  let complaint = ''
  child.stdout!.setEncoding('utf8').on('data', (text: string) => terminal.stdout.write(text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    if (json) complaint += text
    else terminal.stderr.write(text)
  })
  const [code] = (await once(child, 'close').finally(() => signal.removeEventListener('abort', stop))) as [
    number | null
  ]
  if (code === 0) return
  const why = complaint.trim().replace(/^svcd: /, '')
  throw new CliError(ENDS[code ?? -1] ?? EXIT.failed, why || 'the store was not moved; the old one is in charge')
}

async function refuseBesideDaemon({ client, terminal, signal }: Session): Promise<void> {
  const { socketPath } = client
  if ((await runningVersion(socketPath, signal)) === undefined) return
  const { pid } = await client.status()
  throw new CliError(EXIT.failed, `the daemon runs (pid ${pid}), and uses the store: stop it first`, {
    hint:
      installedAgentSocket(terminal.env) === socketPath
        ? 'launchctl bootout gui/$(id -u)/io.svc.svcd'
        : `as a service: systemctl --user stop svcd.socket svcd.service; started by hand: kill ${pid}`
  })
}
