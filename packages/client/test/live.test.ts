import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { makeModelFolder } from '@svc/testkit/models'
import { SVCD } from '@svc/testkit/programs'
import { until } from '@svc/testkit/until'
import { Compile } from 'typebox/compile'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createClient } from '../src/index.ts'
import { ROUTES } from '../src/protocol.ts'

const NODE = ['--conditions=svc-source', '--disable-warning=ExperimentalWarning']
const here = import.meta.dirname
const folder = mkdtempSync(join(tmpdir(), 'svc-live-'))
const socketPath = join(folder, 'd.sock')
const client = createClient({ socketPath })
let daemon: ChildProcess

beforeAll(async () => {
  makeModelFolder(join(folder, 'model'))
  const config = join(folder, 'config.toml')
  writeFileSync(config, '[swarm]\nenabled = false\n')
  daemon = spawn(
    process.execPath,
    [...SVCD, '--root', join(folder, 'root'), '--socket', socketPath, '--config', config],
    {
      stdio: 'ignore'
    }
  )
  let isUp = false
  const look = async (): Promise<void> => {
    if (daemon.exitCode !== null) throw new Error(`the daemon ended with ${daemon.exitCode}`)
    if (!existsSync(socketPath)) return
    isUp = await client.models().then(
      () => true,
      () => false
    )
  }
  await until(() => isUp, look)
}, 60_000)
afterAll(async () => {
  client.close()
  const ended = new Promise((done) => daemon.once('exit', done))
  if (daemon.exitCode === null && daemon.kill('SIGTERM')) await ended
  rmSync(folder, { recursive: true, force: true })
})

it('the README example runs', async () => {
  const readme = readFileSync(resolve(here, '../README.md'), 'utf8')
  const example = /```ts\n([\s\S]*?)```/.exec(readme)![1]!
  // inside the package, so that it imports it by its own name.
  const script = resolve(here, `readme-example-${process.pid}.ts`)
  writeFileSync(script, example)
  try {
    const env = { ...process.env, SVC_SOCKET: socketPath, MODEL_FOLDER: join(folder, 'model') }
    const child = spawn(process.execPath, [...NODE, script], { env, stdio: ['ignore', 'pipe', 'inherit'] })
    let stdout = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    expect(await new Promise((done) => child.on('close', done))).toBe(0)
    expect(stdout).toMatch(/^done \d+ \d+$/m)
    expect(stdout).toMatch(/^\/.*\/blobs\/sha256\//m)
    expect(stdout).toMatch(/^GGUF$/m)
  } finally {
    rmSync(script)
  }
})

it("the daemon's answers fit the schemas", async () => {
  const ref = 'svc:///acme/tiny:bf16'
  const done = await client.waitJob(await client.importLocal({ paths: [join(folder, 'model')], as: 'acme/tiny' }))
  const answers = {
    importLocal: done,
    resolve: await client.resolve(ref),
    open: await client.open(ref),
    ensure: await client.ensure({ ref }),
    verify: await client.waitJob(await client.verify({ target: 'all' })),
    jobs: { jobs: await client.jobs() },
    models: await client.models(),
    status: await client.status()
  }
  for (const [route, answer] of Object.entries(answers)) {
    const schema = ROUTES[route as keyof typeof answers].response
    expect([route, Compile(schema).Errors(answer)]).toEqual([route, []])
  }
})
