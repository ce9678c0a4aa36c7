// Models as OCI artifacts, from one daemon to another: through layouts, archives and a real registry, and as independent tools see them.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createClient } from '@svc/client'
import { makeGguf, makeModelFolder, seededBytes } from '@svc/testkit/models'
import { haveRegistry, haveSkopeo, skopeo, startRegistry, type TestRegistry } from '@svc/testkit/registry'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { laterUndo, manifestOf, ok, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 60_000 })
const undo = laterUndo()
const REFS = ['acme/tiny:bf16', 'acme/split:q4_k_m'] as const
let from: TestDaemon
let to: TestDaemon

/** Removes the imported models, so that the next import has to bring the bytes. */
async function forget(daemon: TestDaemon): Promise<void> {
  for (const ref of REFS) await daemon.svc('rm', ref)
  await ok(daemon, 'gc')
}

const importing = (ref: string, source: string) => ['import', 'oci', source, '--as', ref.split(':')[0]!]

beforeAll(async () => {
  ;[from, to] = await Promise.all([testDaemon({}, undo.later), testDaemon({}, undo.later)])
  makeModelFolder(join(from.folder, 'tiny'), { ggufs: {} })
  writeFileSync(join(from.folder, 'tiny/LICENSE'), 'A licence of our own.\n')
  const split = join(from.folder, 'split')
  mkdirSync(split)
  for (const part of [1, 2])
    writeFileSync(join(split, `split-Q4_K_M-0000${part}-of-00002.gguf`), makeGguf({ seed: part }))
  writeFileSync(join(split, 'mmproj-F16.gguf'), makeGguf({ metadata: { 'general.architecture': 'clip' } }))
  await ok(from, 'import', 'local', 'tiny', '--as', 'acme/tiny')
  await ok(from, 'import', 'local', split, '--as', 'acme/split')
})
afterAll(undo.all)

describe('layouts and archives', () => {
  it('give another daemon the same manifests', async () => {
    for (const place of ['layout', 'models.tar']) {
      const path = join(from.folder, place)
      await ok(from, 'export', 'oci', ...REFS, path)
      await forget(to)
      const refs: string[] = []
      for (const ref of REFS) refs.push(await ok(to, ...importing(ref, path), '--tag', ref.split(':')[1]!))
      expect(refs).toEqual(REFS)
      for (const ref of REFS) expect(await manifestOf(to, ref)).toBe(await manifestOf(from, ref))
      expect(await ok(to, 'verify')).not.toContain('damaged')
    }
  })

  it('are reproducible; a truncated archive is resumed, and wrong bytes in it are detected', async () => {
    const [one, two] = [join(from.folder, 'one.tar'), join(from.folder, 'two.tar')]
    await ok(from, 'export', 'oci', REFS[0], one)
    const bytes = readFileSync(one)
    writeFileSync(`${two}.partial`, bytes)
    truncateSync(`${two}.partial`, Math.floor(bytes.length / 2))
    await ok(from, 'export', 'oci', REFS[0], two)
    expect(readFileSync(two).equals(bytes)).toBe(true)
    rmSync(two)
    writeFileSync(`${two}.partial`, seededBytes(bytes.length + 10_000, 5))
    await ok(from, 'export', 'oci', REFS[0], two)
    expect(readFileSync(two).equals(bytes)).toBe(true)
    // an existing archive is not changed
    expect(await from.svc('export', 'oci', REFS[0], two)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(two)
    })
    expect(readFileSync(two).equals(bytes)).toBe(true)
    const listed = spawnSync('tar', ['-tf', two], { encoding: 'utf8' })
    expect(listed).toMatchObject({ status: 0, stdout: expect.stringMatching(/^oci-layout\n[\s\S]*\nindex\.json\n$/) })
  })

  it('adding models to a layout keeps the existing ones', async () => {
    const path = join(from.folder, 'growing')
    await ok(from, 'export', 'oci', REFS[0], path)
    await ok(from, 'export', 'oci', REFS[1], path)
    await ok(from, 'export', 'oci', REFS[1], path)
    const { manifests } = JSON.parse(readFileSync(join(path, 'index.json'), 'utf8'))
    expect(manifests).toHaveLength(2)
    mkdirSync(join(from.folder, 'other'), { recursive: true })
    writeFileSync(join(from.folder, 'other/mine'), 'mine')
    expect(await from.svc('export', 'oci', REFS[0], 'other')).toMatchObject({ code: 2 })
  })

  it('one damaged byte is refused, and nothing of the artifact becomes visible', async () => {
    const path = join(from.folder, 'damaged')
    await ok(from, 'export', 'oci', REFS[1], path)
    const blob = readFileSync(await ok(from, 'path', '--blob', REFS[1]))
    const file = join(path, 'blobs/sha256', createHash('sha256').update(blob).digest('hex'))
    blob[blob.length - 1]! ^= 1
    writeFileSync(file, blob)
    await forget(to)
    expect(await to.svc(...importing(REFS[1], path))).toMatchObject({ code: 1 })
    expect(await to.svc('resolve', REFS[1])).toMatchObject({ code: 3 })
  })

  it("an artifact's annotation cannot take another artifact's name", async () => {
    const path = join(from.folder, 'names')
    await ok(from, 'export', 'oci', REFS[0], path)
    await forget(to)
    makeModelFolder(join(to.folder, 'mine'), { ggufs: {} })
    writeFileSync(join(to.folder, 'mine/chat_template.jinja'), 'mine')
    await ok(to, 'import', 'local', 'mine', '--as', 'acme/tiny')
    const mine = await manifestOf(to, REFS[0])
    const theirs = await manifestOf(from, REFS[0])
    expect(mine).not.toBe(theirs)
    const refused = await to.svc(...importing(REFS[0], path), '--json')
    expect(refused.code).toBe(2)
    expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: 'E_NAME_TAKEN' } })
    // annotations can be wrong: the files decide
    const client = createClient({ socketPath: to.socketPath })
    const job = await client.waitJob(await client.importOci({ path, as: 'acme/tiny', replace: false }))
    expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE', candidates: [REFS[0]] } })
    expect(await manifestOf(to, REFS[0])).toBe(mine)
    await ok(to, 'import', 'oci', path, '--as', 'other/tiny')
    expect(await to.svc('import', 'oci', path, '--as', 'acme/tiny')).toMatchObject({ code: 2 })
    expect(await manifestOf(to, REFS[0])).toBe(mine)
    await ok(to, 'import', 'oci', path, '--as', 'acme/tiny', '--replace')
    expect(await manifestOf(to, REFS[0])).toBe(theirs)
    // importing the same artifact again replaces nothing
    await ok(to, ...importing(REFS[0], path))
    client.close()
    await ok(to, 'rm', 'other/tiny')
  })

  it('private models are exported only with --withheld', async () => {
    await ok(from, 'private', REFS[1])
    const refused = await from.svc('export', 'oci', REFS[1], 'secret')
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--withheld') })
    await ok(from, 'export', 'oci', '--withheld', REFS[1], 'secret')
    await ok(from, 'private', '--off', REFS[1])
  })

  it('an artifact packed by another tool is imported by its titles', async () => {
    const path = join(from.folder, 'theirs')
    const blobs = join(path, 'blobs/sha256')
    mkdirSync(blobs, { recursive: true })
    const put = (bytes: Buffer) => {
      const hex = createHash('sha256').update(bytes).digest('hex')
      writeFileSync(join(blobs, hex), bytes)
      return { digest: `sha256:${hex}`, size: bytes.length }
    }
    const layer = { mediaType: 'application/vnd.oci.image.layer.v1.tar', ...put(makeGguf({ seed: 9 })) }
    const manifest = {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: { mediaType: 'application/vnd.unknown.config.v1+json', ...put(Buffer.from('{}')) },
      layers: [{ ...layer, annotations: { 'org.opencontainers.image.title': 'Their-Model-Q8_0.gguf' } }]
    }
    const entry = { mediaType: manifest.mediaType, ...put(Buffer.from(JSON.stringify(manifest))) }
    writeFileSync(join(path, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
    writeFileSync(join(path, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [entry] }))
    expect(await to.svc('import', 'oci', path)).toMatchObject({ code: 2, stderr: expect.stringContaining('--as') })
    expect(await ok(to, 'import', 'oci', path, '--as', 'their/model')).toBe('their/model:q8_0')
  })
})

describe('content behind a login to a registry', () => {
  /** The pull side of a registry over a layout; asks for a login for URLs that match `guarded`. */
  async function serveLayout(layout: string, guarded: RegExp): Promise<string> {
    const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8'))
    const server = createServer(({ url = '', headers }, response) => {
      if (guarded.test(url) && headers.authorization !== `Basic ${LOGIN}`)
        return response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end()
      const [, what, name] = /^\/v2\/team\/model\/(manifests|blobs)\/(.+)$/.exec(url) ?? []
      const digest: string = name?.startsWith('sha256:') ? name : manifests[0].digest
      const bytes = readFileSync(join(layout, 'blobs/sha256', digest.slice('sha256:'.length)))
      if (what === 'manifests') response.setHeader('content-type', manifests[0].mediaType)
      response.writeHead(200, { 'content-length': bytes.length }).end(bytes)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    undo.later(() => void server.close().closeAllConnections())
    return `127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const LOGIN = Buffer.from('me:secret').toString('base64')
  function lastBlob(layout: string): RegExp {
    const read = (path: string) => JSON.parse(readFileSync(join(layout, path), 'utf8'))
    const { layers } = read(`blobs/sha256/${read('index.json').manifests[0].digest.slice('sha256:'.length)}`)
    return new RegExp(layers.at(-1).digest)
  }

  it('is refused by name without a login', async () => {
    const layout = join(from.folder, 'no-login')
    await ok(from, 'export', 'oci', REFS[1], layout)
    const registry = await serveLayout(layout, /\/blobs\//)
    vi.stubEnv('DOCKER_CONFIG', join(from.folder, 'nobody'))
    const refused = await to.svc(...importing(REFS[1], `${registry}/team/model:x`))
    vi.unstubAllEnvs()
    expect(refused).toMatchObject({ code: 6, stderr: expect.stringContaining('DOCKER_CONFIG') })
  })

  it.each<[string, RegExp | 'last', true | undefined]>([
    ['everything', /./, true],
    ['the blobs alone', /\/blobs\//, true],
    ['the last blob alone', 'last', true],
    ['nothing', /^$/, undefined]
  ])('content behind a login is held back: %s', async (what, guarded, restricted) => {
    const layout = join(from.folder, `guarded-${what.length}`)
    await ok(from, 'export', 'oci', REFS[1], layout)
    const registry = await serveLayout(layout, guarded === 'last' ? lastBlob(layout) : guarded)
    const docker = join(from.folder, 'docker')
    mkdirSync(docker, { recursive: true })
    writeFileSync(join(docker, 'config.json'), JSON.stringify({ auths: { [registry]: { auth: LOGIN } } }))
    vi.stubEnv('DOCKER_CONFIG', docker)
    try {
      await forget(to)
      await ok(to, ...importing(REFS[1], `${registry}/team/model:x`))
    } finally {
      vi.unstubAllEnvs()
    }
    const client = createClient({ socketPath: to.socketPath })
    const { namespaces } = await client.models()
    client.close()
    const members = namespaces.flatMap((each) => each.members)
    const manifest = await manifestOf(to, REFS[1])
    expect(members.find((each) => each.manifest === manifest)?.restricted).toBe(restricted)
  })
})

describe.skipIf(!haveRegistry)('a registry', () => {
  let registry: TestRegistry
  beforeAll(async () => {
    registry = await startRegistry(join(from.folder, 'registry'))
    undo.later(() => registry.stop())
  })

  it('accepts a model once, and another daemon imports it', async () => {
    const image = `${registry.address}/team/split`
    const pushed = JSON.parse(await ok(from, 'push', REFS[1], image, '--json'))
    expect(pushed).toMatchObject({ image: `${image}:q4_k_m`, sentBytes: expect.any(Number) })
    expect(JSON.parse(await ok(from, 'push', REFS[1], image, '--json'))).toMatchObject({
      sentBytes: 0,
      digest: pushed.digest
    })
    const mounted = ['--mount-from', 'team/split', '--json']
    expect(JSON.parse(await ok(from, 'push', REFS[1], `${registry.address}/other/name:x`, ...mounted))).toMatchObject({
      sentBytes: 0
    })
    await forget(to)
    expect(await ok(to, ...importing(REFS[1], `${image}:q4_k_m`))).toBe(REFS[1])
    expect(await manifestOf(to, REFS[1])).toBe(await manifestOf(from, REFS[1]))
    expect(await ok(to, 'import', 'oci', `${image}@${pushed.digest}`, '--as', 'by/digest')).toBe('by/digest:q4_k_m')
    expect(await to.svc('import', 'oci', `${image}:absent`)).toMatchObject({ code: 3 })
  })

  it.skipIf(!haveSkopeo)(
    'skopeo copies an artifact from a layout and back, and the result can be imported',
    async () => {
      const [path, back] = [join(from.folder, 'for-skopeo'), join(from.folder, 'by-skopeo')]
      await ok(from, 'export', 'oci', REFS[0], path)
      const tls = (side: string) => `--${side}-tls-verify=false`
      await skopeo(
        'copy',
        '--preserve-digests',
        tls('dest'),
        `oci:${path}:bf16`,
        `docker://${registry.address}/by/skopeo:1`
      )
      await skopeo(
        'copy',
        '--preserve-digests',
        tls('src'),
        `docker://${registry.address}/by/skopeo:1`,
        `oci:${back}:1`
      )
      await forget(to)
      expect(await ok(to, ...importing(REFS[0], back))).toBe(REFS[0])
      await forget(to)
      expect(await ok(to, ...importing(REFS[0], `${registry.address}/by/skopeo:1`))).toBe(REFS[0])
      expect(await manifestOf(to, REFS[0])).toBe(await manifestOf(from, REFS[0]))
    }
  )

  it.skipIf(!haveSkopeo)('takes an ordinary image, whose layers unpack to the files', async () => {
    const image = `${registry.address}/images/tiny:1`
    await ok(from, 'push', '--image', REFS[0], image)
    const [folder, files] = [join(from.folder, 'image'), join(from.folder, 'unpacked')]
    await skopeo('copy', '--src-tls-verify=false', `docker://${image}`, `dir:${folder}`)
    mkdirSync(files)
    const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'))
    for (const { digest } of manifest.layers) {
      expect(spawnSync('tar', ['-xf', join(folder, digest.slice('sha256:'.length)), '-C', files]).status).toBe(0)
    }
    const view = await ok(from, 'path', '--dir', REFS[0])
    for (const name of ['model.safetensors', 'tokenizer.json', 'config.json']) {
      expect(readFileSync(join(files, 'models', name)).equals(readFileSync(join(view, name)))).toBe(true)
    }
    expect(statSync(join(files, 'models/LICENSE')).size).toBe(22)
    expect(await to.svc('import', 'oci', image, '--as', 'by/image')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('ordinary image')
    })
  })
})
