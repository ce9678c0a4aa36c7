// The first hour of somebody new, through the programs alone: choose a quant of a repository as publishers spell it, load it in llama.cpp, see it, share it
// with another machine, remove it, see the space come back. Needs `dist`, so `pnpm build` comes first.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type FakeHub, startFakeHub } from '../packages/testkit/src/fake-hub.ts'
import { haveLlamaCpp, loadLlama } from '../packages/testkit/src/llama-cpp.ts'
import { makeLlamaGgufs } from '../packages/testkit/src/llama-gguf.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const REPO = 'Some-Org/Model-7B-GGUF'
const MODEL = 'some-org/model-7b-gguf'
const QUANTS = ['Q2_K', 'Q3_K_M', 'Q4_K_M', 'Q5_K_M', 'Q6_K', 'Q8_0']

interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Somebody with a home folder and a daemon, whose settings are the defaults but for the DHT: nobody outside is told of a test. */
class Person {
  readonly home = mkdtempSync(join(tmpdir(), 'svc-hour-'))
  readonly config = join(this.home, '.config', 'svc', 'config.toml')
  readonly #env: NodeJS.ProcessEnv
  readonly #machine: readonly string[]
  #daemon: ChildProcess | undefined

  /** `machine` is the network namespace that its programs run in; without one, this machine's. */
  constructor(hub: string, machine?: string) {
    this.#machine = machine === undefined ? [] : ['ip', 'netns', 'exec', machine]
    const { PATH } = process.env
    const run = join(this.home, 'run')
    mkdirSync(run, { mode: 0o700 })
    mkdirSync(join(this.config, '..'), { recursive: true })
    writeFileSync(this.config, '# mine\n[swarm]\ndht = false\n')
    this.#env = {
      PATH: `${join(root, 'bin')}:${PATH}`,
      HOME: this.home,
      XDG_RUNTIME_DIR: run,
      HF_ENDPOINT: hub,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE
    }
  }

  async start(): Promise<void> {
    const [program = '', ...args] = [...this.#machine, join(root, 'bin/svcd')]
    const daemon = spawn(program, args, { env: this.#env, stdio: ['ignore', 'ignore', 'pipe'] })
    this.#daemon = daemon
    let log = ''
    await new Promise<void>((resolve, reject) => {
      daemon.stderr.setEncoding('utf8').on('data', (text: string) => {
        log += text
        if (log.includes('"listening"')) resolve()
      })
      daemon.once('exit', (code) => reject(new Error(`svcd ended with ${code}:\n${log}`)))
    })
  }

  async leave(): Promise<void> {
    const daemon = this.#daemon
    if (daemon !== undefined && daemon.exitCode === null) {
      const over = new Promise((resolve) => daemon.once('exit', resolve))
      daemon.kill('SIGTERM')
      await over
    }
    rmSync(this.home, { recursive: true, force: true })
  }

  svc(...args: string[]): Promise<Ran> {
    return this.#run(join(root, 'bin/svc'), args)
  }

  /** As a shell takes the line apart. */
  shell(line: string): Promise<Ran> {
    return this.#run('/bin/sh', ['-c', line])
  }

  /** On a terminal, which answers the first question. */
  atTerminal(line: string, answer: string): Promise<Ran> {
    return this.#run('script', ['-qec', line, '/dev/null'], answer)
  }

  async lines(...args: string[]): Promise<string[]> {
    const { code, stdout, stderr } = await this.svc(...args)
    expect({ args, code, stderr }).toMatchObject({ code: 0 })
    return stdout.trimEnd().split('\n')
  }

  async storeBytes(): Promise<number> {
    return JSON.parse((await this.svc('status', '--json')).stdout).store.bytes
  }

  async #run(program: string, args: readonly string[], answer?: string): Promise<Ran> {
    const [first = '', ...rest] = [...this.#machine, program, ...args]
    const child = spawn(first, rest, { cwd: this.home, env: this.#env, stdio: ['pipe', 'pipe', 'pipe'] })
    let [stdout, stderr] = ['', '']
    let asked = false
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      if (asked || answer === undefined || !stdout.includes('? (')) return
      asked = true
      child.stdin.write(`${answer}\n`)
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    if (answer === undefined) child.stdin.end()
    const code = await new Promise<number | null>((done, failed) => {
      child.once('error', failed)
      child.once('close', done)
    })
    return { code, stdout, stderr }
  }
}

const people: Person[] = []
let hub: FakeHub
let here: Person
let there: Person

beforeAll(async () => {
  hub = await startFakeHub()
  hub.commit({
    id: REPO,
    files: QUANTS.map((quant, i) => ({ path: `Model-7B-${quant}.gguf`, content: makeLlamaGgufs({ seed: i + 1 })[0]! }))
  })
  for (let i = 0; i < 2; i++) people.push(new Person(hub.endpoint))
  ;[here, there] = people as [Person, Person]
  await Promise.all(people.map((person) => person.start()))
}, 60_000)
afterAll(async () => {
  await Promise.all(people.map((person) => person.leave()))
  await hub?.close()
})

test('from a repository of six quants to a loaded model, and back to an empty disk', { timeout: 120_000 }, async () => {
  const before = await here.storeBytes()

  // choose: nobody can be asked, so that the list is told; then by name, in any case
  const asked = await here.svc('import', 'hf', REPO)
  expect(asked).toMatchObject({ code: 2, stdout: '' })
  for (const quant of QUANTS) expect(asked.stderr).toMatch(new RegExp(`^ +${quant.toLowerCase()} +\\d+ KiB`, 'm'))
  // a header, which says what fits
  const readToAsk = new Map(hub.bytesSent)
  expect(await here.lines('import', 'hf', `${REPO}:q4_k_m`)).toEqual([`${MODEL}:q4_k_m`])
  const fetched = [...hub.bytesSent].filter(([path, bytes]) => path.endsWith('.gguf') && bytes !== readToAsk.get(path))
  expect(fetched.map(([path]) => path)).toEqual(['Model-7B-Q4_K_M.gguf'])

  // load: the only quant need not be named
  const [path = ''] = await here.lines('path', 'Some-Org/Model-7B-GGUF')
  expect(basename(path)).toMatch(/\.gguf$/)
  expect(readFileSync(path)).toEqual(makeLlamaGgufs({ seed: 3 })[0])
  if (haveLlamaCpp) expect((await loadLlama(path)).vocabularySize).toBeGreaterThan(200)

  // see
  expect((await here.lines('ls')).at(-1)).toMatch(new RegExp(`^${MODEL}:q4_k_m +161 KiB +complete +not yet `))
  expect((await here.lines('du'))[1]).toMatch(new RegExp(`^${MODEL}:q4_k_m +16\\d KiB `))
  expect(await here.storeBytes()).toBeGreaterThan(before + statSync(path).size)
  expect((await here.lines('verify')).at(-1)).toMatch(/all good$/)

  // share: what is printed is typed on another machine, whose settings are the defaults
  const shared = await here.lines('share', MODEL)
  const command = shared.map((line) => line.trim()).find((line) => line.startsWith('svc import bt '))!
  const got = await there.shell(command)
  expect(got).toMatchObject({ code: 0, stdout: `${MODEL}:q4_k_m\n` })
  expect(got.stderr).not.toContain('warning')
  expect((await there.lines('ls')).at(-1)).toMatch(/complete +yes /)
  expect(await there.lines('resolve', MODEL, '-q')).toEqual(await here.lines('resolve', MODEL, '-q'))
  expect((await here.lines('ls')).at(-1)).toMatch(/complete +yes /)

  // keep it to oneself after all: nobody gets it any more
  await here.lines('private', MODEL)
  const kept = await here.svc('share', MODEL)
  expect(kept.stderr).toMatch(/is not shared: it is private/)
  expect((await here.lines('ls')).at(-1)).toMatch(/complete +private /)

  // remove, and the space comes back
  await here.lines('rm', MODEL)
  expect((await here.lines('gc')).at(-1)).toMatch(/^freed \d+ KiB/)
  expect(existsSync(path)).toBe(false)
  expect(await here.storeBytes()).toBe(before)
  expect(await here.svc('path', MODEL)).toMatchObject({ code: 3, stdout: '' })
})

const ip = (...args: string[]): boolean => spawnSync('ip', args, { stdio: 'ignore' }).status === 0
const haveNamespaces = process.getuid?.() === 0 && ip('netns', 'list')

test.skipIf(!haveNamespaces)(
  'the command that share prints works unchanged on another machine (network namespaces, needs root)',
  { timeout: 120_000 },
  async () => {
    const names = ['a', 'b'].map((side) => `svc-${process.pid}-${side}`) as [string, string]
    onTestFinished(async () => {
      for (const name of names) ip('netns', 'del', name)
    })
    for (const name of names) expect(ip('netns', 'add', name)).toBe(true)
    const [a, b] = names
    expect(ip('-n', a, 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', b)).toBe(true)
    for (const [i, name] of names.entries()) {
      expect(ip('-n', name, 'addr', 'add', `192.0.2.${i + 1}/24`, 'dev', 'eth0')).toBe(true)
      for (const device of ['lo', 'eth0']) expect(ip('-n', name, 'link', 'set', device, 'up')).toBe(true)
    }
    const [publisher, reader] = names.map((name) => new Person('http://127.0.0.1:9', name)) as [Person, Person]
    onTestFinished(async () => {
      await Promise.all([publisher.leave(), reader.leave()])
    })
    await Promise.all([publisher.start(), reader.start()])
    writeFileSync(join(publisher.home, 'own-q8_0.gguf'), makeLlamaGgufs({ seed: 51 })[0]!)
    await publisher.lines('import', 'local', 'own-q8_0.gguf', '--as', 'me/own')
    const { stdout, stderr } = await publisher.svc('share', 'me/own')
    // nothing stands in the way, and no address is named that only the publisher reaches
    expect(stderr).toBe('')
    expect(stdout).toContain('192.0.2.1:')
    expect(stdout).not.toContain('127.0.0.1')
    const command = /^ +(svc import bt .*)$/m.exec(stdout)![1]!
    expect(await reader.shell(command)).toMatchObject({ code: 0, stdout: 'me/own:q8_0\n' })
    expect(await reader.lines('resolve', 'me/own', '-q')).toEqual(await publisher.lines('resolve', 'me/own', '-q'))
    // the doctor has nothing to advise for it either
    expect((await publisher.svc('doctor')).stdout).not.toContain('webseed_addr')
  }
)

const onLinux = process.platform === 'linux' && existsSync('/usr/bin/script')

test.skipIf(!onLinux)('svc asks on a terminal', { timeout: 60_000 }, async () => {
  const chosen = await here.atTerminal(`svc import hf ${REPO} --as me/chosen`, 'Q2_K')
  expect(chosen.stdout).toContain('Which?')
  expect(chosen).toMatchObject({ code: 0 })
  expect(await here.lines('ls', 'me/chosen', '-q')).toEqual(['me/chosen:q2_k'])

  // own models: asked once, remembered by the daemon, in the configuration
  writeFileSync(join(here.home, 'own-q8_0.gguf'), makeLlamaGgufs({ seed: 31 })[0]!)
  const told = await here.svc('import', 'local', 'own-q8_0.gguf', '--as', 'me/told')
  expect(told).toMatchObject({ code: 0, stdout: 'me/told:q8_0\n' })
  expect(told.stderr).toContain('--private')
  const first = await here.atTerminal('svc import local own-q8_0.gguf --as me/own', 'no')
  expect(first.stdout).toContain('Share own models?')
  expect(first).toMatchObject({ code: 0 })
  expect(readFileSync(here.config, 'utf8')).toBe('# mine\n[swarm]\nseed_local = false\ndht = false\n')
  const second = await here.atTerminal('svc import local own-q8_0.gguf --as me/more', 'no')
  expect(second.stdout).not.toContain('Share own models?')
  expect((await here.svc('ls', 'me/more')).stdout).toMatch(/complete +private /)
})
