// Two daemons on loopback: what `svc share` prints is typed at the other one, and corrupt blobs come back.
import { execFileSync } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeModelFolder } from '@svc/testkit/models'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { laterUndo, QUIET_SWARM, type TestDaemon, testDaemon } from './support.ts'

const undo = laterUndo()
let here: TestDaemon
let there: TestDaemon
let pinned: string

beforeAll(async () => {
  here = await testDaemon({ fileConfig: { swarm: { ...QUIET_SWARM, webseed_addr: '' } } }, undo.later)
  there = await testDaemon({ fileConfig: { swarm: QUIET_SWARM } }, undo.later)
  makeModelFolder(join(here.folder, 'tiny'), { ggufs: { q8_0: 'Q8_0' }, files: { 'model.safetensors': undefined } })
  expect(await here.svc('import', 'local', 'tiny', '--as', 'acme/tiny')).toMatchObject({ code: 0 })
  const { manifestDigest } = JSON.parse((await here.svc('resolve', 'acme/tiny:q8_0', '--json')).stdout)
  pinned = `acme/tiny@${manifestDigest}`
}, 120_000)
afterAll(undo.all)

const weights = (): Buffer => readFileSync(join(here.folder, 'tiny/tiny-q8_0.gguf'))

it('the command that share prints imports the model on the other side', { timeout: 60_000 }, async () => {
  const { stdout, code } = await here.svc('share', 'acme/tiny:q8_0')
  expect(code).toBe(0)
  const command = stdout
    .split('\n')
    .map((line) => line.trim())
    .find((line) => line.startsWith('svc import bt '))!
  expect(command).toMatch(/ --as acme\/tiny$/)
  expect((await here.svc('share', 'acme/tiny:q8_0', '--quiet')).stdout).toBe(`${command}\n`)
  // as a shell splits it
  const words = execFileSync('/bin/sh', ['-c', `printf '%s\\n' ${command}`], { encoding: 'utf8' })
    .trimEnd()
    .split('\n')
  const ran = await there.svc(...words.slice(1))
  expect(ran).toMatchObject({ code: 0, stdout: 'acme/tiny:q8_0\n' })
  const found = await there.svc('path', `svc:///${pinned}`)
  expect(readFileSync(found.stdout.trim()).equals(weights())).toBe(true)
})

it('swarm shows what is served', async () => {
  const { torrents, seeding } = JSON.parse((await here.svc('swarm', '--json')).stdout)
  expect(seeding).toBe(1)
  const plain = (await here.svc('swarm')).stdout
  expect(torrents).toHaveLength(1)
  expect(plain).toContain('acme/tiny:q8_0')
  expect(plain).toMatch(/^peers connect to 127\.0\.0\.1:\d+, from this machine only$/m)
  expect((await here.svc('status')).stdout).toMatch(/^swarm +sharing 1 model, /m)
})

it('verify quarantines a corrupt blob, and pull repairs it from the other daemon', { timeout: 60_000 }, async () => {
  const path = (await there.svc('path', pinned)).stdout.trim()
  chmodSync(path, 0o600)
  writeFileSync(path, Buffer.from(weights()).fill(0, 100, 200))
  const verified = await there.svc('verify')
  expect(verified.code).toBe(5)
  expect(verified.stdout).toMatch(/^acme\/tiny:q8_0 .*svc pull acme\/tiny:q8_0$/m)
  const gone = await there.svc('path', pinned)
  expect(gone).toMatchObject({ code: 3, stdout: '' })
  expect(gone.stderr).toContain(`svc pull ${pinned}`)

  const pulled = await there.svc('pull', pinned)
  expect(pulled).toMatchObject({ code: 0, stdout: `${pinned}\n` })
  expect(readFileSync((await there.svc('path', pinned)).stdout.trim()).equals(weights())).toBe(true)
  expect((await there.svc('verify')).code).toBe(0)
})

it('what cannot be imported says why', async () => {
  const other = `sha256:${'0'.repeat(64)}`
  const shared = JSON.parse((await here.svc('share', 'acme/tiny:q8_0', '--json')).stdout)
  const wrongPin = await there.svc('import', 'bt', shared.magnet, '--pin', other, '--json', '-q')
  expect(wrongPin.code).not.toBe(0)
  expect(['E_SOURCE_UNAVAILABLE', 'E_NOT_IMPORTABLE']).toContain(JSON.parse(wrongPin.stderr).error.code)
  expect(await there.svc('import', 'bt', shared.infohash, '--pin', 'sha256:00')).toMatchObject({ code: 2, stdout: '' })
  expect(await there.svc('pull', 'svc:///acme/none:q8_0')).toMatchObject({ code: 3, stdout: '' })
})
