// `svc seed`: what is shared, and turning that on and off, with a running daemon and without one.

import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@svc/client'
import { loadConfig } from '@svc/daemon'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { SVCD } from '@svc/testkit/programs'
import { expect, it, onTestFinished, vi } from 'vitest'
import { ok, QUIET_SWARM, svc, svcProcess, type TestDaemon, testDaemon, typing } from './support.ts'

vi.setConfig({ testTimeout: 60_000 })

const REPO = 'Acme/Tiny-GGUF'
const QUIET = `dht = false # nobody is asked
peer_addr = "127.0.0.1:0"
webseed_addr = "127.0.0.1:0"`

/** A folder with a configuration of these lines below `[swarm]`, and a hub with one model. */
async function given(lines = ''): Promise<{ readonly folder: string; readonly file: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-seed-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  hub.commit({ id: REPO, files: [{ path: 'tiny-q8_0.gguf', content: makeGguf({ seed: 1 }) }] })
  const file = join(folder, 'config.toml')
  writeFileSync(file, `# mine\n[hub]\nendpoint = "${hub.endpoint}"\n\n[swarm] # the swarm\n${QUIET}\n${lines}`)
  return { folder, file }
}

async function daemonOf({ folder, file }: { readonly folder: string; readonly file: string }): Promise<TestDaemon> {
  return testDaemon({ folder, config: await loadConfig({ config: file, root: join(folder, 'root') }, {}) })
}

const swarmOf = async (daemon: TestDaemon) => JSON.parse((await daemon.svc('status', '--json')).stdout).swarm

it('"off" removes everything from the swarm at once, "on" restores it, and comments in the configuration are kept', async () => {
  const place = await given('seed_on_import = true\n')
  const before = readFileSync(place.file, 'utf8')
  const daemon = await daemonOf(place)
  expect((await daemon.svc('import', 'hf', REPO)).code).toBe(0)
  await expect.poll(async () => (await swarmOf(daemon)).seeding).toBe(1)
  const { webseedAddress, torrents } = await swarmOf(daemon)
  const metadata = `http://${webseedAddress}/bt/${torrents[0].infohash.slice('btmh:1220'.length)}.torrent`
  expect((await fetch(metadata)).status).toBe(200)
  expect(await daemon.svc('seed')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^sharing 1 model/) })

  const off = await daemon.svc('seed', 'off')
  expect(off).toMatchObject({ code: 0, stdout: expect.stringMatching(/^fetching only/) })
  expect(readFileSync(place.file, 'utf8')).toBe(before.replace('# the swarm\n', '# the swarm\nseed = false\n'))
  expect(await swarmOf(daemon)).toMatchObject({ seed: false, seeding: 0, torrents: [] })
  expect((await fetch(metadata)).status).toBe(404)
  expect(JSON.parse((await daemon.svc('share', 'acme/tiny-gguf:q8_0', '--json')).stdout)).toMatchObject({
    announced: false
  })
  expect((await daemon.svc('seed', '-q')).stdout).toBe('off\n')

  // what the file says is what the next start does
  await daemon.pause()
  const again = await daemonOf(place)
  expect(await swarmOf(again)).toMatchObject({ seed: false, seeding: 0, torrents: [] })
  expect((await swarmOf(again)).webseedAddress).toBeUndefined()
  const on = await again.svc('seed', 'on', '--json')
  expect(JSON.parse(on.stdout)).toMatchObject({ seed: true, enabled: true, file: place.file })
  expect(readFileSync(place.file, 'utf8')).toBe(before.replace('# the swarm\n', '# the swarm\nseed = true\n'))
  await expect.poll(async () => (await swarmOf(again)).seeding).toBe(1)
  const { webseedAddress: opened } = await swarmOf(again)
  expect((await fetch(metadata.replace(webseedAddress, opened))).status).toBe(200)
})

it('an upload limit is saved and shown in the status', async () => {
  const place = await given('')
  const daemon = await daemonOf(place)
  const client = createClient({ socketPath: daemon.socketPath })
  onTestFinished(() => client.close())
  expect(await client.limitUpload({ bytesPerSecond: 4096 })).toEqual({ bytesPerSecond: 4096, file: place.file })
  expect(await swarmOf(daemon)).toMatchObject({ uploadLimitBytesPerSecond: 4096 })
  await daemon.pause()
  const again = await daemonOf(place)
  expect(await swarmOf(again)).toMatchObject({ uploadLimitBytesPerSecond: 4096 })
  await expect(client.limitUpload({ bytesPerSecond: -1 })).rejects.toMatchObject({ code: 'E_BAD_REQUEST' })
  await client.limitUpload({ bytesPerSecond: 0 })
  expect((await swarmOf(again)).uploadLimitBytesPerSecond).toBeUndefined()
})

it('svc limit shows and sets both rates, at once and in the configuration', async () => {
  const place = await given('')
  const daemon = await daemonOf(place)
  expect((await daemon.svc('limit')).stdout).toMatch(/^download +no limit\nupload +no limit\n$/)
  expect((await daemon.svc('limit', 'download', '20MB/s')).stdout).toMatch(/^download +19\.1 MiB\/s\n/)
  expect((await daemon.svc('limit', 'upload', '1.5MiB')).code).toBe(0)
  expect(readFileSync(place.file, 'utf8')).toContain('[network]\ndownload_limit = 20000000')
  await daemon.pause()
  const again = await daemonOf(place)
  const both = JSON.parse((await again.svc('limit', '--json')).stdout)
  expect(both).toEqual({ download: 20_000_000, upload: 1_572_864 })
  expect(JSON.parse((await again.svc('limit', 'download', 'off', '--json')).stdout)).toMatchObject({ download: 0 })
  for (const words of [['download'], ['download', 'fast'], ['sideways', '1MB']])
    expect((await again.svc('limit', ...words)).code).toBe(2)
})

it('private models stay private when sharing is turned on', async () => {
  const daemon = await daemonOf(await given('seed = false\n'))
  expect((await daemon.svc('import', 'hf', REPO, '--private')).code).toBe(0)
  expect((await daemon.svc('import', 'hf', REPO, '--as', 'open/tiny')).code).toBe(0)
  expect((await daemon.svc('private', 'open/tiny')).code).toBe(0)
  expect((await daemon.svc('seed', 'on')).code).toBe(0)
  await expect.poll(async () => (await swarmOf(daemon)).verifying).toBeUndefined()
  expect(await swarmOf(daemon)).toMatchObject({ seed: true, seeding: 0, torrents: [] })
})

it('an uneditable file or a taken address changes nothing', async () => {
  const place = await given('seed = false\n')
  const daemon = await daemonOf(place)
  const taken = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void taken.close())
  await new Promise((listening) => taken.once('listening', listening))
  const { port } = taken.address() as AddressInfo
  const other = await given('seed = false\n')
  writeFileSync(
    other.file,
    readFileSync(other.file, 'utf8').replace('webseed_addr = "127.0.0.1:0"', `webseed_addr = "127.0.0.1:${port}"`)
  )
  const before = readFileSync(other.file, 'utf8')
  const beside = await daemonOf(other)
  const refused = await beside.svc('seed', 'on')
  expect(refused).toMatchObject({ code: 2, stdout: '' })
  expect(refused.stderr).toContain(`127.0.0.1:${port}`)
  expect(readFileSync(other.file, 'utf8')).toBe(before)
  expect((await swarmOf(beside)).seed).toBe(false)

  writeFileSync(place.file, 'swarm = { seed = false }\n')
  expect(await daemon.svc('seed', 'on')).toMatchObject({ code: 2, stdout: '' })
  expect(readFileSync(place.file, 'utf8')).toBe('swarm = { seed = false }\n')
  expect((await swarmOf(daemon)).seed).toBe(false)
})

it('without a daemon the configuration is changed, for the next start', async () => {
  const { folder, file } = await given()
  const before = readFileSync(file, 'utf8')
  const socketPath = join(folder, 's.sock')
  const svcd = join(folder, 'svcd')
  writeFileSync(svcd, `#!/bin/sh\nexec '${[process.execPath, ...SVCD].join("' '")}' "$@"\n`, { mode: 0o755 })
  const run = (...args: string[]) =>
    svc([...args, '--svcd', svcd], {
      socketPath,
      env: { ...process.env, SVC_CONFIG: file, SVC_ROOT: join(folder, 'root') }
    })
  expect((await run('seed', '--quiet')).stdout).toBe('on\n')
  expect(await run('seed', 'off')).toMatchObject({ code: 0, stdout: expect.stringContaining(file) })
  expect(readFileSync(file, 'utf8')).toBe(before.replace('# the swarm\n', '# the swarm\nseed = false\n'))
  expect(JSON.parse((await run('seed', '--json')).stdout)).toEqual({ seed: false, enabled: true, file })
  expect(await run('seed', 'maybe')).toMatchObject({ code: 2, stdout: '' })
})

it('svc and svcd as processes', async () => {
  const { folder, file } = await given()
  const socketPath = join(folder, 's.sock')
  const daemon = spawn(
    process.execPath,
    [...SVCD, '--config', file, '--root', join(folder, 'root'), '--socket', socketPath],
    {
      stdio: 'ignore'
    }
  )
  onTestFinished(async () => {
    const ended = new Promise((done) => daemon.once('close', done))
    daemon.kill('SIGTERM')
    await ended
  })
  const client = createClient({ socketPath })
  onTestFinished(() => client.close())
  await expect
    .poll(
      () =>
        client.status().then(
          ({ swarm }) => swarm.seed,
          () => undefined
        ),
      { timeout: 30_000 }
    )
    .toBe(true)
  expect(await svcProcess(['seed', 'off'], { socketPath })).toMatchObject({ code: 0 })
  expect((await client.status()).swarm.seed).toBe(false)
  expect(readFileSync(file, 'utf8')).toContain('[swarm] # the swarm\nseed = false\ndht = false # nobody is asked\n')
})

it('before the first import from the hub, svc says what is shared, from when, and how to turn it off', async () => {
  const place = await given()
  const daemon = await daemonOf(place)
  const person = () => ({
    columns: 200,
    stdin: typing(),
    env: { HOME: place.folder }
  })
  const told = /^.*BitTorrent.* next start .*svc seed off.*$/gm
  // nobody to tell: a script, and an import that is not shared
  expect((await daemon.svcWith(['import', 'hf', REPO], { env: { HOME: place.folder } })).stderr).not.toMatch(told)
  expect((await daemon.svcWith(['import', 'hf', REPO, '--private'], person())).stderr).not.toMatch(told)
  expect((await daemon.svcWith(['import', 'hf', REPO, '--quiet'], person())).stderr).toBe('')
  expect(existsSync(join(place.folder, '.local'))).toBe(false)
  expect((await daemon.svcWith(['import', REPO], person())).stderr.match(told)).toHaveLength(1)
  expect((await daemon.svcWith(['import', REPO], person())).stderr).not.toMatch(told)

  const other = { ...person(), env: { XDG_STATE_HOME: join(place.folder, 'state') } }
  await daemon.svc('seed', 'off')
  expect((await daemon.svcWith(['import', REPO], other)).stderr).not.toMatch(told)
})

it('svc asks once whether to share own models, and again after an answer that is neither yes nor no', async () => {
  const daemon = await daemonOf(await given())
  writeFileSync(join(daemon.folder, 'own-q8_0.gguf'), makeGguf({ seed: 2 }))
  const words = ['import', 'local', 'own-q8_0.gguf', '--as', 'me/own']
  expect(await daemon.svcWith(words, { columns: 100, stdin: typing('constructor', 'No') })).toMatchObject({
    code: 0,
    stdout: 'me/own:q8_0\n'
  })
  expect(JSON.parse((await daemon.svc('status', '--json')).stdout).seedLocal).toBe(false)
})

it('doctor reports whether models are shared', async () => {
  const daemon = await daemonOf(await given())
  const sharing = async () =>
    JSON.parse((await daemon.svc('doctor', '--json')).stdout).findings.find(
      ({ check }: { readonly check: string }) => check === 'sharing'
    )
  expect(await sharing()).toMatchObject({ level: 'note', advice: expect.stringContaining('svc seed off') })
  await daemon.svc('seed', 'off')
  expect(await sharing()).toMatchObject({ level: 'ok', text: expect.stringContaining('svc seed on') })
})

it('svc share refuses a private model, and says how to share it', async () => {
  const daemon = await testDaemon({ fileConfig: { swarm: QUIET_SWARM } })
  writeFileSync(join(daemon.folder, 'own-q8_0.gguf'), makeGguf({}))
  await ok(daemon, 'import', 'local', 'own-q8_0.gguf', '--as', 'me/own', '--private')
  const refused = await daemon.svc('share', 'me/own')
  expect(refused).toMatchObject({ code: 2, stdout: '' })
  expect(refused.stderr).toContain('svc private me/own:q8_0 --off')
  await ok(daemon, 'private', 'me/own', '--off')
  expect(await ok(daemon, 'share', 'me/own')).toContain('svc import bt')
})
