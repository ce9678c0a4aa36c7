/**
 * `pnpm quickstart [PATH] [--root FOLDER] [--as ns/name]`: a model goes into a verified store and comes out again,
 * through the daemon's socket. Without PATH a small model is made; without --root the store is thrown away at the end. Run after
 * the build.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Client, createClient, type Job } from '../packages/client/src/index.ts'
import { makeModelFolder } from '../packages/testkit/src/models.ts'

const START_TIMEOUT_MS = 20_000
const repoRoot = resolve(import.meta.dirname, '..')
const say = (line = ''): void => console.log(line)
const step = (line: string): void => say(`\n▸ ${line}`)
function sized(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  return bytes < 2 ** 20 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`
}

/** A failure with a message for people; everything else keeps its stack. */
class QuickstartError extends Error {}

interface Daemon {
  readonly process: ChildProcess
  readonly log: () => string
}

function startDaemon(root: string, socketPath: string): Daemon {
  const main = join(repoRoot, 'packages/daemon/dist/main.js')
  if (!existsSync(main)) throw new QuickstartError(`${main} is not built; run: npx --yes pnpm@10 build`)
  const env = { ...process.env, SVC_SOCKET: socketPath }
  // a tour announces nothing to anybody: the swarm client stays off.
  const config = join(dirname(socketPath), 'config.toml')
  writeFileSync(config, '[swarm]\nenabled = false\n')
  const args = [main, '--root', root, '--config', config]
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (log = (log + text).slice(-8000)))
  return { process: child, log: () => log }
}

async function untilReady(client: Client, daemon: Daemon): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS
  for (;;) {
    const { exitCode, signalCode } = daemon.process
    if (exitCode !== null || signalCode !== null) {
      throw new QuickstartError(`the daemon ended (${exitCode ?? signalCode}):\n${daemon.log()}`)
    }
    try {
      await client.models()
      return
    } catch (error) {
      if (Date.now() > deadline) {
        throw new QuickstartError(`the daemon does not answer:\n${daemon.log()}`, { cause: error })
      }
      await delay(50)
    }
  }
}

async function stopDaemon({ process: child }: Daemon): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((done) => child.once('exit', done))
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await ended
  clearTimeout(timer)
}

/** Shows a job on one line that is rewritten on a terminal. */
async function watch(client: Client, job: Job, unit: string): Promise<Job> {
  let last = job
  const live = process.stdout.isTTY
  for await (last of client.watchJob(job, { intervalMs: 200 })) {
    const bytes = last.bytesTotal === undefined ? '' : `, ${sized(last.bytesDone ?? 0)} of ${sized(last.bytesTotal)}`
    const line = `  ${last.state}: ${last.filesDone ?? 0} of ${last.filesTotal ?? '?'} ${unit}${bytes}`
    if (live) process.stdout.write(`\r${line}\u001b[K`)
    else if (last.state === 'done' || last.state === 'failed') say(line)
  }
  if (live) say()
  const { code, message } = last.error ?? {}
  if (last.state === 'failed') throw new QuickstartError(`${last.kind}: ${code}: ${message}`)
  return last
}

async function tour(client: Client, path: string, as: string): Promise<string> {
  step(`Importing ${path} as ${as}`)
  const imported = await watch(client, await client.importLocal({ paths: [path], as }), 'files')
  const { result } = imported
  for (const warning of result?.warnings ?? []) say(`  warning: ${warning}`)
  const quants = result?.quants ?? []
  say(`  quants: ${quants.join(', ')}`)
  const beside = (result?.skipped ?? 0) - (result?.omitted ?? 0)
  if (beside > 0) say(`  kept beside the model (README and the like): ${beside}`)
  if (quants[0] === undefined) throw new QuickstartError('the import gave no quant')

  const ref = `svc:///${as}:${quants[0]}`
  step(`Resolving ${ref}`)
  const resolved = await client.resolve(ref)
  say(`  manifest ${resolved.manifestDigest}`)

  step('Opening it: every blob has a path that programs can read')
  const opened = await client.open(ref)
  const missing = opened.missing?.length ?? 0
  if (missing > 0) throw new QuickstartError(`${missing} blobs are missing after the import`)
  for (const { name, kind, size } of opened.files) {
    if (name !== undefined) say(`  ${(kind ?? '').padEnd(20)} ${sized(size).padStart(10)}  ${name}`)
  }
  const weights = opened.files.find(({ kind }) => kind === 'weights.gguf' || kind === 'weights.safetensors')
  if (weights === undefined) throw new QuickstartError('no weights among the files')
  say(`  weights at ${weights.path}`)

  step(`Reading the first 32 bytes of ${weights.name} over the socket`)
  const { body } = await client.readBlob(weights.digest, { start: 0, end: 32 })
  const head = Buffer.concat((await body.toArray()) as Buffer[])
  say(`  ${head.toString('hex')}  ${head.toString('latin1').replace(/[^\x20-\x7e]/g, '.')}`)

  step('Verifying the whole store')
  const verified = await watch(client, await client.verify({ target: 'all' }), 'blobs')
  say(`  ${verified.filesTotal ?? 0} blobs hash to their names`)
  return ref
}

const thrownAway = `
✔ It works. This store is thrown away now. Next, with a store that stays:

  bin/svc import local PATH --as my/model               # starts the daemon; bin/svc stop ends it
  bin/svc ls
  bin/svc --help`

const kept = (root: string, ref: string): string => `
✔ It works, and the store stays. Next:

  npx --yes pnpm@10 start --root ${root}   # in a terminal of its own; Ctrl-C ends it
  bin/svc ls
  bin/svc path ${ref}
  bin/svc --help`

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    args: process.argv.slice(process.argv[2] === '--' ? 3 : 2),
    options: { root: { type: 'string' }, as: { type: 'string' } }
  })
  if (positionals.length > 1) throw new QuickstartError('give one PATH at most')
  let path = positionals[0] === undefined ? undefined : resolve(process.env.INIT_CWD ?? '.', positionals[0])
  if (path !== undefined && !existsSync(path)) throw new QuickstartError(`there is no ${path}`)
  const work = mkdtempSync(join(tmpdir(), 'svc-quickstart-'))
  const root = values.root === undefined ? join(work, 'store') : resolve(values.root)
  const socketPath = join(work, 'svc.sock')
  const interrupt = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => interrupt.abort(new QuickstartError('interrupted')))
  }
  let daemon: Daemon | undefined
  const client = createClient({ socketPath, signal: interrupt.signal })
  try {
    if (path === undefined) {
      path = join(work, 'tiny-llama')
      step('Making a small model: two GGUF quants, safetensors, tokenizer, licence')
      for (const name of makeModelFolder(path, { width: 512 })) {
        say(`  ${sized(statSync(join(path, name)).size).padStart(9)}  ${name}`)
      }
    }
    step(`Starting the daemon on ${root}`)
    daemon = startDaemon(root, socketPath)
    await untilReady(client, daemon)
    say(`  listening on ${socketPath} (mode 0600: only you can open it)`)
    const words = basename(path)
      .toLowerCase()
      .replace(/\.(gguf|safetensors)$/, '')
      .replace(/[^a-z0-9._-]+/g, '-')
    const as = values.as ?? `demo/${words.replace(/^[^a-z0-9]+/, '').slice(0, 128) || 'model'}`
    const ref = await tour(client, path, as)
    say(values.root === undefined ? thrownAway : kept(root, ref.slice('svc:///'.length)))
  } finally {
    client.close()
    if (daemon !== undefined) await stopDaemon(daemon)
    rmSync(work, { recursive: true, force: true })
  }
}

try {
  await main()
} catch (error) {
  const expected = error instanceof QuickstartError || (error as Error).name === 'ClientError'
  console.error(`\n✘ quickstart failed: ${expected ? (error as Error).message : ((error as Error).stack ?? error)}`)
  process.exitCode = 1
}
