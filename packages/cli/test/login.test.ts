// `svc login hf`, and where the daemon finds a token of the hub.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { type DaemonConfig, mergeConfig } from '@svc/daemon'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { missingModules, PYTHON } from '@svc/testkit/python-loaders'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { type TestDaemon, testDaemon } from './support.ts'

let hub: FakeHub
let home: string

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-login-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  hub = await startFakeHub({ tokens: ['good', 'other'] })
  onTestFinished(() => hub.close())
  for (const id of ['acme/one', 'acme/two', 'acme/three'])
    hub.commit({ id, gated: 'manual', files: [{ path: 'a-q8_0.gguf', content: makeGguf({ seed: id.length }) }] })
})

const configured = (env: Record<string, string>, more: { readonly use_client_token?: boolean } = {}): DaemonConfig =>
  mergeConfig(
    { swarm: { enabled: false }, hub: { endpoint: hub.endpoint, ...more } },
    { root: join(home, 'root') },
    { HOME: home, ...env }
  )
const running = (env: Record<string, string> = {}, more = {}): Promise<TestDaemon> =>
  testDaemon({ config: configured(env, more) })
const typed = (text: string) => ({ env: { HOME: home }, stdin: Object.assign(Readable.from([text]), { isTTY: false }) })
const imported = async (daemon: TestDaemon, repo: string): Promise<number> =>
  (await daemon.svc('import', repo)).code ?? -1

test('the next import uses a login until logout, without a restart', async () => {
  const daemon = await running()
  expect(await imported(daemon, 'acme/one')).toBe(6)
  const ran = await daemon.svcWith(['login', 'hf'], typed('good\n'))
  expect(ran).toMatchObject({ code: 0, stdout: '' })
  expect(ran.stderr).not.toContain('good')
  expect(ran.stderr).toContain('account-1')
  const file = join(home, '.cache/huggingface/token')
  expect(readFileSync(file, 'utf8')).toBe('good')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(await imported(daemon, 'acme/one')).toBe(0)
  // what a credential was needed for is withheld
  expect((await daemon.svc('why', 'acme/one')).stdout).toContain('fetched with a token')

  expect((await daemon.svcWith(['logout', 'hf'], { env: { HOME: home } })).code).toBe(0)
  expect(await imported(daemon, 'acme/two')).toBe(6)
})

test('login asks a person, and does not echo the token', async () => {
  const daemon = await running()
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => stdin })
  stdin.end('goox\u007fd\r')
  const ran = await daemon.svcWith(['login', 'hf'], { env: { HOME: home }, columns: 80, stdin })
  expect(ran.code).toBe(0)
  expect(ran.stderr).not.toContain('goo')
  expect(await imported(daemon, 'acme/one')).toBe(0)
})

test('a token that the hub rejects is not stored', async () => {
  const daemon = await running()
  const ran = await daemon.svcWith(['login', 'hf'], typed('bad\n'))
  expect(ran.code).toBe(6)
  expect(ran.stderr).toContain('rejects the token')
  expect(existsSync(join(home, '.cache/huggingface/token'))).toBe(false)
  expect((await daemon.svcWith(['login', 'hf', '--no-check'], typed('bad\n'))).code).toBe(0)
})

test('without the hub, or the daemon, nothing is stored', async () => {
  const daemon = await running()
  await hub.close()
  expect((await daemon.svcWith(['login', 'hf'], typed('good\n'))).code).toBe(6)
  await daemon.pause()
  expect((await daemon.svcWith(['login', 'hf'], typed('good\n'))).code).toBe(4)
  expect(existsSync(join(home, '.cache/huggingface/token'))).toBe(false)
})

test("another program's token is replaced only with --replace, or by a person who says so", async () => {
  const file = join(home, '.cache/huggingface/token')
  mkdirSync(join(home, '.cache/huggingface'), { recursive: true })
  writeFileSync(file, 'other\n')
  const daemon = await running()
  const refused = await daemon.svcWith(['login', 'hf'], typed('good\n'))
  expect(refused.code).toBe(2)
  expect(refused.stderr).toContain(file)
  const said = async (answer: string) => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => stdin })
    stdin.end(`good\r${answer}\n`)
    return (await daemon.svcWith(['login', 'hf'], { env: { HOME: home }, columns: 80, stdin })).code
  }
  expect(await said('')).toBe(2)
  expect(readFileSync(file, 'utf8')).toBe('other\n')
  expect(await said('y')).toBe(0)
  expect(readFileSync(file, 'utf8')).toBe('good')
  expect((await daemon.svcWith(['login', 'hf', '--replace'], typed('other\n'))).code).toBe(0)
  expect(readFileSync(file, 'utf8')).toBe('other')
})

test('login says when the daemon takes its token from elsewhere', async () => {
  const inEnvironment = await running({ HF_TOKEN: 'other' })
  expect((await inEnvironment.svcWith(['login', 'hf'], typed('good\n'))).stderr).toContain('HF_TOKEN')
  await inEnvironment.pause()
  const elsewhere = await running({ HF_HOME: join(home, 'elsewhere') })
  const ran = await elsewhere.svcWith(['login', 'hf'], typed('good\n'))
  expect(ran.stderr).toContain(join(home, 'elsewhere/token'))
})

test('an import with a token that the hub rejects names where the token came from', async () => {
  const file = join(home, '.cache/huggingface/token')
  mkdirSync(join(home, '.cache/huggingface'), { recursive: true })
  writeFileSync(file, 'stale')
  const fromFile = await running()
  const ran = await fromFile.svc('import', 'acme/one')
  expect(ran).toMatchObject({ code: 6, stderr: expect.stringContaining(file) })
  expect(ran.stderr).toContain('svc logout hf')
  await fromFile.pause()
  const fromVariable = await running({ HF_TOKEN: 'stale' })
  expect((await fromVariable.svc('import', 'acme/one')).stderr).toContain('HF_TOKEN')
})

test.each([
  ['nothing', ''],
  ['two words', 'two words\n'],
  ['what is not ASCII', 'ümlaut\n'],
  ['5,000 characters', `${'x'.repeat(5000)}\n`]
])('%s is not a token and is not stored', async (_, text) => {
  const daemon = await running()
  expect((await daemon.svcWith(['login', 'hf'], typed(text))).code).toBe(2)
  const ran = await daemon.svcWith(['logout', 'hf', '--json'], { env: { HOME: home } })
  expect(JSON.parse(ran.stdout)).toMatchObject({ removed: false })
})

test('SVC_HF_TOKEN wins over HF_TOKEN, which wins over the file that HF_TOKEN_PATH or HF_HOME names', async () => {
  mkdirSync(join(home, 'hf'))
  writeFileSync(join(home, 'hf/token'), 'good\n')
  writeFileSync(join(home, 'elsewhere'), 'bad')
  const codes = async (env: Record<string, string>, more = {}): Promise<number> => {
    const daemon = await running(env, more)
    const code = await imported(daemon, 'acme/one')
    await daemon.pause()
    return code
  }
  expect(await codes({ HF_HOME: join(home, 'hf') }, { use_client_token: false })).toBe(6)
  expect(await codes({ HF_HOME: join(home, 'hf'), HF_HUB_DISABLE_IMPLICIT_TOKEN: '1' })).toBe(6)
  expect(await codes({ HF_HOME: join(home, 'hf'), HF_TOKEN_PATH: join(home, 'elsewhere') })).toBe(6)
  expect(await codes({ HF_HOME: join(home, 'hf'), HF_TOKEN: 'bad' })).toBe(6)
  expect(await codes({ SVC_HF_TOKEN: 'bad', HF_TOKEN: 'good' })).toBe(6)
  expect(await codes({ SVC_HF_TOKEN: 'good', HF_TOKEN: 'bad' })).toBe(0)
})

test('HF_TOKEN alone or the file alone is enough', async () => {
  mkdirSync(join(home, 'hf'))
  writeFileSync(join(home, 'hf/token'), 'good\n')
  for (const env of [{ HF_TOKEN: 'other' }, { HF_HOME: join(home, 'hf') }]) {
    const daemon = await running(env)
    expect(await imported(daemon, 'acme/one')).toBe(0)
    await daemon.pause()
  }
})

test('an import fails if the token file holds no token; the error has its path but not its content', async () => {
  mkdirSync(join(home, '.cache/huggingface'), { recursive: true })
  writeFileSync(join(home, '.cache/huggingface/token'), 'secret with spaces')
  const daemon = await running()
  const ran = await daemon.svc('import', 'acme/one', '--json')
  expect(ran.code).toBe(6)
  const { code, message } = JSON.parse(ran.stderr).error
  expect(code).toBe('E_SOURCE_FORBIDDEN')
  expect(message).toContain(join(home, '.cache/huggingface/token'))
  expect(message).not.toContain('secret')
})

/** What the hub's own client finds with each of these environments. */
function clientFinds(environments: readonly Record<string, string>[]): { path: string; token: string | null }[] {
  const script = `
import importlib, json, os, sys
from huggingface_hub import constants, get_token
said = []
for env in json.load(sys.stdin):
    os.environ.clear()
    os.environ.update(env)
    importlib.reload(constants)
    said.append({"path": constants.HF_TOKEN_PATH, "token": get_token()})
print(json.dumps(said))`
  const ran = spawnSync(PYTHON, ['-c', script], { input: JSON.stringify(environments), encoding: 'utf8' })
  expect(ran.stderr).toBe('')
  return JSON.parse(ran.stdout)
}

test.skipIf(missingModules.includes('huggingface_hub'))(
  "login writes, and logout removes, the token file that the hub's own client reads",
  async () => {
    const daemon = await running()
    const environments: Record<string, string>[] = [
      {},
      { HF_HOME: join(home, 'a') },
      { HF_HOME: '~/b' },
      { HF_HOME: ['$HOME/c/$', '{USER}'].join(''), USER: 'me' },
      { HF_TOKEN_PATH: '~/d/my-token', HF_HOME: join(home, 'a') },
      { XDG_CACHE_HOME: '~/e' }
    ].map((env) => ({ HOME: home, ...env }))
    const written: string[] = []
    for (const env of environments) {
      const login = await daemon.svcWith(['login', 'hf', '--json'], { ...typed('good\n'), env })
      written.push(JSON.parse(login.stdout).file)
    }
    expect(clientFinds(environments)).toEqual(written.map((path) => ({ path, token: 'good' })))
    expect(environments.map((env) => configured(env).hub.tokenFile)).toEqual(written)
    for (const env of environments) expect((await daemon.svcWith(['logout', 'hf'], { env })).code).toBe(0)
    expect(clientFinds(environments)).toEqual(written.map((path) => ({ path, token: null })))
  }
)
