// Models as static files: from one store through a plain web server or a bucket to another daemon, and to libtorrent.
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OpenResult } from '@svc/client'
import { haveLibtorrent, Libtorrent } from '@svc/testkit/libtorrent'
import { makeModelFolder, seededBytes } from '@svc/testkit/models'
import { haveNginx, type Nginx, startNginx } from '@svc/testkit/nginx'
import { haveS3Server, type S3Server, startS3Server } from '@svc/testkit/s3-server'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { typed } from './folders.ts'
import { laterUndo, manifestOf, ok, QUIET_SWARM, svcProcess, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 120_000 })
const undo = laterUndo()
const REF = 'acme/odd:q8_0'
let from: TestDaemon

/** The S3 server keeps metadata in extended attributes, which file systems in memory lack. */
function onDisk(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-publish-'))
  undo.later(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

/** A daemon without peers: all bytes come from webseeds. */
const alone = (fileConfig: object = {}): Promise<TestDaemon> =>
  testDaemon({ fileConfig: { swarm: QUIET_SWARM, ...fileConfig } })

const companionsOf = async (daemon: TestDaemon, ref: string): Promise<string> =>
  JSON.parse(await ok(daemon, 'show', ref, '--json')).companions.digest

interface PublishedJson {
  readonly url?: string
  readonly sentBytes: number
  readonly presentBytes: number
  readonly checkedRanges: number
  readonly models: readonly {
    readonly name: string
    readonly torrent: string
    readonly command: string
    readonly magnet: string
  }[]
}
const publish = async (...args: string[]): Promise<PublishedJson> =>
  JSON.parse(await ok(from, 'publish', ...args, '--json')) as PublishedJson

/** libtorrent fetches everything from the webseed that the .torrent names. */
async function byLibtorrent(torrent: Uint8Array): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-lt-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'it.torrent'), torrent)
  const session = await Libtorrent.start()
  onTestFinished(() => session.stop())
  await session.add({ torrent: join(folder, 'it.torrent'), save: folder })
  await session.until(({ seeding }) => seeding, 100_000)
  return folder
}

beforeAll(async () => {
  from = await testDaemon({}, undo.later)
  const folder = join(from.folder, 'odd')
  mkdirSync(join(folder, 'größe a+b%20c#d'), { recursive: true })
  // more than a piece
  writeFileSync(
    join(folder, 'odd-Q8_0.gguf'),
    Buffer.concat([Buffer.from(`GGUF\x03\0\0\0${'\0'.repeat(16)}`, 'latin1'), seededBytes(2_300_000, 3)])
  )
  writeFileSync(join(folder, 'größe a+b%20c#d/adapter_model.safetensors'), seededBytes(50_000, 7))
  writeFileSync(join(folder, 'größe a+b%20c#d/adapter_config.json'), '{}')
  writeFileSync(join(folder, 'config.json'), '{"model_type":"llama"}\n')
  await ok(from, 'import', 'local', folder, '--as', 'acme/odd')
  makeModelFolder(join(from.folder, 'tiny'), { ggufs: {} })
  await ok(from, 'import', 'local', 'tiny', '--as', 'acme/tiny')
})
afterAll(undo.all)

describe.skipIf(!haveNginx)('below nginx', () => {
  let nginx: Nginx
  let root: string
  beforeAll(async () => {
    const folder = onDisk()
    root = join(folder, 'www')
    mkdirSync(root)
    nginx = await startNginx(join(folder, 'nginx'), root)
    undo.later(() => nginx.stop())
  })

  it('another daemon imports from a published folder alone', async () => {
    const url = `${nginx.url}my%20models/`
    const done = await publish(REF, 'acme/tiny', join(root, 'my models'), '--url', url)
    expect(done).toMatchObject({ url, presentBytes: 0, models: [{}, {}] })
    expect(done.checkedRanges).toBeGreaterThan(10)
    const to = await alone({})
    for (const { command } of done.models) await typed(to, command)
    for (const ref of [REF, 'acme/tiny']) expect(await manifestOf(to, ref)).toBe(await manifestOf(from, ref))
    expect(await ok(to, 'verify')).not.toContain('damaged')
    expect(await publish(REF, 'acme/tiny', join(root, 'my models'))).toMatchObject({ url, sentBytes: 0 })
    // the address alone says the same
    const byAddress = await alone({})
    const several = await byAddress.svc('import', url)
    expect(several).toMatchObject({ code: 2, stdout: '' })
    expect(several.stderr).toContain(`svc import '${url}#acme/`)
    expect(await ok(byAddress, 'import', `${url}#${REF}`)).toBe(REF)
    // an address chooses no names by itself
    const unnamed = await byAddress.svc('import', url, '--all')
    expect(unnamed).toMatchObject({ code: 2, stdout: '' })
    expect(unnamed.stderr).toContain(`svc import '${url}#acme/tiny`)
    await ok(byAddress, 'import', `${url}#acme/tiny`)
    for (const ref of [REF, 'acme/tiny']) expect(await manifestOf(byAddress, ref)).toBe(await manifestOf(from, ref))
    expect(await byAddress.svc('import', `${nginx.url}nothing/`)).toMatchObject({ code: 3 })
    const page = await (await fetch(url)).text()
    expect(page).toContain('acme/odd:q8_0')
    expect(existsSync(join(root, 'my models', '.svc-publish'))).toBe(false)
  })

  it.skipIf(!haveLibtorrent)('libtorrent loads all of it by the .torrent', async () => {
    const done = await publish(REF, join(root, 'lt'), '--url', `${nginx.url}lt`)
    const { name, torrent } = done.models[0]!
    const bytes = Buffer.from(await (await fetch(`${nginx.url}lt/${torrent}`)).arrayBuffer())
    const folder = await byLibtorrent(bytes)
    const odd = readFileSync(join(folder, name, 'größe a+b%20c#d/adapter.tar'))
    expect(odd.equals(readFileSync(join(root, 'lt', name, 'größe a+b%20c#d/adapter.tar')))).toBe(true)
  })

  it('an address with other content is detected; --no-check skips the check', async () => {
    const place = join(root, 'later')
    const wrong = ['publish', REF, place, '--url', `${nginx.url}elsewhere/`]
    expect(await from.svc(...wrong, '--json')).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('E_CHECK_FAILED')
    })
    expect(existsSync(join(place, 'index.json'))).toBe(false)
    await ok(from, ...wrong, '--no-check')
    renameSync(place, join(root, 'elsewhere'))
    await ok(from, 'publish', REF, join(root, 'elsewhere'), '--url', `${nginx.url}elsewhere/`)
  })
})

describe.skipIf(!haveS3Server)('in a bucket', () => {
  let s3: S3Server
  const svc = (...args: string[]) => from.svcWith(args, { cwd: from.folder, env: s3.env })
  beforeAll(async () => {
    s3 = await startS3Server(join(onDisk(), 's3'))
    undo.later(() => s3.stop())
  })

  it('with keys: a daemon with a key imports from it, and holds the model back', async () => {
    const ran = await svc('publish', REF, `s3://${s3.bucket}/private models`, '--json')
    expect(ran.code, ran.stderr).toBe(0)
    const done = JSON.parse(ran.stdout) as PublishedJson
    expect(done.url).toBe(`${s3.endpoint}/${s3.bucket}/private%20models/`)
    const keyless = await alone({ swarm: { ...QUIET_SWARM, fill_timeout: 1 } })
    const refused = await keyless.svc(
      ...done.models[0]!.command.split(' ')
        .slice(1)
        .map((word) => word.replaceAll("'", ''))
    )
    expect(refused.code).toBe(6)
    const file = join(onDisk(), 'key')
    const key = (secret: string): string =>
      `[default]\naws_access_key_id = ${s3.accessKeyId}\naws_secret_access_key = ${secret}\n`
    writeFileSync(file, key(s3.secretAccessKey), { mode: 0o600 })
    const to = await testDaemon({
      fileConfig: { swarm: QUIET_SWARM, webseed: { [done.url!]: { credentials_file: file } } }
    })
    await typed(to, done.models[0]!.command)
    for (const of of [manifestOf, companionsOf]) expect(await of(to, REF)).toBe(await of(from, REF))
    const shared = await to.svc('share', REF)
    expect(shared.stderr).toContain('seed_restricted')
    expect(await to.svc('publish', REF, join(to.folder, 'out'))).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--withheld')
    })
    const again = JSON.parse(
      (await svc('publish', REF, `s3://${s3.bucket}/private models/`, '--json')).stdout
    ) as PublishedJson
    expect(again).toMatchObject({ sentBytes: 0, presentBytes: done.sentBytes })
  })

  it.skipIf(!haveLibtorrent)('that is public: libtorrent downloads from it', async () => {
    const ran = await svc('publish', REF, `s3://${s3.bucket}/open`, '--url', `${s3.publicUrl}open`, '--json')
    expect(ran.code, ran.stderr).toBe(0)
    const { models } = JSON.parse(ran.stdout) as PublishedJson
    const answer = await fetch(`${s3.publicUrl}open/${models[0]!.torrent}`)
    await byLibtorrent(Buffer.from(await answer.arrayBuffer()))
  })

  it('errors of the store have exit codes, and no secret in them', async () => {
    const denied = await from.svcWith(['publish', REF, `s3://${s3.bucket}/x`], {
      cwd: from.folder,
      env: { ...s3.env, AWS_SECRET_ACCESS_KEY: 'wrong-secret' }
    })
    expect(denied).toMatchObject({ code: 6, stdout: '' })
    expect(denied.stderr).not.toContain('wrong-secret')
    expect(await svc('publish', REF, 's3://nonesuch/x')).toMatchObject({ code: 3 })
    expect(await svc('publish', REF, 's3://Bad_Bucket/x')).toMatchObject({ code: 2 })
  })
})

describe('the published files', () => {
  it('requires an address, and refuses invalid models and addresses', async () => {
    for (const args of [
      ['publish', REF],
      ['publish', REF, 'out', '--url', 'ftp://x'],
      ['publish', REF, 'https://x/y']
    ])
      expect(await from.svc(...args)).toMatchObject({ code: 2, stdout: '' })
    expect(await from.svc('publish', 'acme/none:q8_0', 'out')).toMatchObject({ code: 3 })
    expect(existsSync(join(from.folder, 'out'))).toBe(false)
  })

  it('excludes private models unless requested', async () => {
    await ok(from, 'private', 'acme/tiny')
    const refused = await from.svc('publish', REF, 'acme/tiny', 'secret')
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--withheld') })
    expect(existsSync(join(from.folder, 'secret'))).toBe(false)
    await ok(from, 'publish', '--withheld', 'acme/tiny', 'secret')
    await ok(from, 'private', '--off', 'acme/tiny')
  })

  it("reports companions whose bytes are lost, but never names the owner's own files", async () => {
    mkdirSync(join(from.folder, 'lossy'))
    cpSync(join(from.folder, 'odd/odd-Q8_0.gguf'), join(from.folder, 'lossy/lossy-Q8_0.gguf'))
    const beside = { 'README.md': '# lossy', 'generation_config.json': '{"top_k":7}', 'notes.txt': 'mine' }
    for (const [name, text] of Object.entries(beside)) writeFileSync(join(from.folder, 'lossy', name), text)
    await ok(from, 'import', 'local', 'lossy', '--as', 'acme/lossy')
    const { companions } = JSON.parse(await ok(from, 'show', 'acme/lossy:q8_0', '--json')) as OpenResult
    expect(companions).not.toHaveProperty('missing')
    const lost = companions!.files.filter(({ path }) => path === 'README.md' || path === 'notes.txt')
    for (const { blobPath } of lost) rmSync(blobPath)
    const shown = JSON.parse(await ok(from, 'show', 'acme/lossy:q8_0', '--json')) as OpenResult
    expect(shown.companions!.missing).toEqual(lost.map(({ blobPath: _, ...file }) => file))
    const { warnings, models } = JSON.parse(await ok(from, 'publish', 'acme/lossy:q8_0', 'lossy-out', '--json'))
    expect(warnings).toEqual([expect.stringContaining('README.md')])
    const told = await from.svc('publish', 'acme/lossy:q8_0', 'lossy-out')
    expect(told).toMatchObject({ code: 0, stderr: expect.stringContaining(warnings[0]) })
    const digest = / --companions sha256:(\w{64})@/.exec(models[0].command)![1]!
    const out = join(from.folder, 'lossy-out')
    const document = readdirSync(out, { recursive: true, encoding: 'utf8' }).find((path) => path.endsWith(digest))!
    const { files, omitted } = JSON.parse(
      readFileSync(join(out, document), 'utf8')
    ) as Required<OpenResult>['companions']
    expect(files.map(({ path }) => path)).toContain('generation_config.json')
    expect(omitted.filter(({ reason }) => reason !== 'artifact')).toEqual([
      { path: 'README.md', size: beside['README.md'].length, reason: 'unreadable' }
    ])
  })

  it('resumes after Ctrl-C and after a kill', async () => {
    const interrupted = await from.svcWith(['publish', REF, 'stopped'], { cwd: from.folder, interruptAt: 'publishing' })
    expect(interrupted).toMatchObject({ code: 130, stderr: expect.stringContaining('same command') })
    const killed = await svcProcess(['publish', REF, 'killed'], {
      socketPath: from.socketPath,
      cwd: from.folder,
      when: { stderr: 'publishing', act: (child) => child.kill('SIGKILL') }
    })
    // a fast run may have ended before
    expect([null, 0]).toContain(killed.code)
    for (const place of ['stopped', 'killed']) {
      const done = await publish(REF, place)
      expect(done.checkedRanges).toBeGreaterThan(5)
      expect(existsSync(join(from.folder, place, '.svc-publish'))).toBe(false)
    }
  })

  it('shows progress bars on a terminal, and prints the command for other machines', async () => {
    const ran = await from.svcWith(['publish', REF, 'shown'], { cwd: from.folder, columns: 120 })
    expect(ran.code, ran.stderr).toBe(0)
    // drawn while lines do not wrap, then erased
    expect(ran.stderr).toMatch(/^\u001b\[\?7l[#-]+ +\d+% publishing [^\n]*\u001b\[\?7h/)
    expect(ran.stderr).toMatch(/\r\u001b\[J[^\u001b]+$/)
    expect(ran.stdout).toMatch(
      /^svc import bt 'magnet:\?xt=urn:btmh:\S+' --pin sha256:\w{64} --companions sha256:\w{64}@btmh:\w{68} --webseed '<address of this folder>' --as acme\/odd\n$/
    )
  })
})
