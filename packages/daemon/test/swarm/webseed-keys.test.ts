// Webseeds that want a signature: who gets one, where keys come from, and what a private bucket brings.
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ShareResult } from '@svc/client/protocol'
import { systemClock } from '@svc/internal-clock'
import type { Sha256Digest } from '@svc/ref'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { WebseedKeys } from '../../../sharing/src/webseed-keys.ts'
import { webseedKeyConfigs } from '../../src/config/webseed.ts'
import { ConfigError } from '../../src/errors.ts'
import { temporaryFolder } from '../support/daemon.ts'
import { contentOf, kindOf, startWebseed } from './fake-webseed.ts'
import { modelAlone, Node, pinned, weights } from './nodes.ts'

const KEY = 'aws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = hush/hush+hush\n'
const ENV = { AWS_ACCESS_KEY_ID: 'AKIAENV', AWS_SECRET_ACCESS_KEY: 'quiet' }
const keysFor = (base: string, table: object = {}, env = {}): WebseedKeys =>
  new WebseedKeys(webseedKeyConfigs({ [base]: table }), env)
const authorization = async (keys: WebseedKeys, url: string): Promise<string | undefined> =>
  (await keys.headersFor(new URL(url), { range: 'bytes=0-9' }))?.authorization

describe('who gets a signature', () => {
  const keys = keysFor('https://s3.example/models/public', {}, ENV)

  test("a URL below the table's address", async () => {
    expect(await authorization(keys, 'https://s3.example/models/public/svc-sha256-0/x')).toContain('AKIAENV')
  })

  test.each([
    'http://s3.example/models/public/x',
    'https://s3.example:8443/models/public/x',
    'https://s3.example.evil/models/public/x',
    'https://evil/s3.example/models/public/x',
    'https://s3.example/models/publicity/x',
    'https://s3.example/models/public/../private/x',
    'https://s3.example/models/public/%2e%2e/private/x',
    'https://s3.example@evil/models/public/x',
    'https://s3.example/'
  ])('not %s', async (url) => {
    expect(await authorization(keys, url)).toBeUndefined()
  })

  test('the more specific table applies', async () => {
    const file = join(temporaryFolder(), 'keys')
    writeFileSync(file, `[default]\n${KEY}`, { mode: 0o600 })
    const both = new WebseedKeys(
      webseedKeyConfigs({ 'https://h/': {}, 'https://h/part/': { credentials_file: file } }),
      ENV
    )
    expect(await authorization(both, 'https://h/part/x')).toContain('AKIAEXAMPLE')
    expect(await authorization(both, 'https://h/other/x')).toContain('AKIAENV')
  })
})

describe('a file with keys', () => {
  const file = (text: string, mode = 0o600): string => {
    const path = join(temporaryFolder(), 'keys')
    writeFileSync(path, text)
    chmodSync(path, mode)
    return path
  }
  const check = (path: string, profile?: string): Promise<void> =>
    keysFor('https://h/', { credentials_file: path, ...(profile && { profile }) }).check()

  test('has the format of the AWS tools; comments and other lines are ignored', async () => {
    const text = `# mine\n[other]\naws_access_key_id=AKIAOTHER\naws_secret_access_key=x\nregion = nowhere\n\n[ default ] ; yes\r\n${KEY}`
    await check(file(text))
    const keys = keysFor('https://h/', { credentials_file: file(text), profile: 'other' })
    expect(await authorization(keys, 'https://h/x')).toContain('AKIAOTHER')
  })

  test('may be a link and readable by a group, as clusters mount secrets', async () => {
    const path = file(`[default]\n${KEY}`, 0o440)
    symlinkSync(path, `${path}-link`)
    await check(`${path}-link`)
  })

  test.each([
    ['readable to all', () => file(`[default]\n${KEY}`, 0o644)],
    ['writable to the group', () => file(`[default]\n${KEY}`, 0o660)],
    ['without the profile', () => file(`[other]\n${KEY}`)],
    ['without a secret', () => file('[default]\naws_access_key_id = AKIAEXAMPLE\n')],
    [
      'with a line break in a secret',
      () => file('[default]\naws_access_key_id = A\naws_secret_access_key = a\u0000b\n')
    ],
    ['that is none', () => (mkdirSync(join(temporaryFolder(), 'd')), temporaryFolder())],
    ['that is too large', () => file(`[default]\n${KEY}${'#'.repeat(70_000)}`)],
    ['that is absent', () => '/nonexistent/keys']
  ])('%s is refused without quoting its content', async (_name, make) => {
    const path = make()
    const error = await check(path).catch((thrown: unknown) => thrown as Error)
    expect(error).toMatchObject({ name: 'LibraryError', code: 'E_INVALID' })
    expect((error as Error).message).toContain(path)
    for (const secret of ['AKIA', 'hush']) expect((error as Error).message).not.toContain(secret)
  })

  test('is reloaded when it changes', async () => {
    const path = file(`[default]\n${KEY}`)
    const keys = keysFor('https://h/', { credentials_file: path })
    expect(await authorization(keys, 'https://h/x')).toContain('AKIAEXAMPLE')
    writeFileSync(path, `[default]\n${KEY.replace('AKIAEXAMPLE', 'AKIARENEWED')}`)
    expect(await authorization(keys, 'https://h/x')).toContain('AKIARENEWED')
  })

  test('is not needed with keys in the environment; without both, the start fails', async () => {
    await keysFor('https://h/', {}, ENV).check()
    await expect(keysFor('https://h/', {}, { AWS_ACCESS_KEY_ID: 'alone' }).check()).rejects.toMatchObject({
      code: 'E_INVALID'
    })
  })
})

test.each([
  ['ftp://h/', {}],
  ['s3://bucket/', {}],
  ['https://user:secret@h/', {}],
  ['https://h/?x=1', {}],
  ['https://h/#x', {}],
  ['https://h/', { region: 'EU West' }],
  ['https://h/', { credentials_file: 'relative' }],
  ['https://h/', { profile: 'a]' }]
])('the table %s %j is refused', (url, table) => {
  expect(() => webseedKeyConfigs({ [url]: table })).toThrow(ConfigError)
})

describe('a private bucket', () => {
  test('serves a signed import, which is withheld then; a redirect elsewhere gets no signature', async () => {
    const seed = await Node.start()
    const share = modelAlone(await seed.publish())
    const content = await contentOf(share)
    await seed.stop()
    const seen: [string, string | undefined][] = []
    const elsewhere = await startWebseed(content, (path, request) => {
      seen.push([path, request.headers.authorization])
      return false
    })
    const bucket = await startWebseed(content, (path, request, response) => {
      const key =
        /^AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE\/\d{8}\/eu-north-1\/s3\/aws4_request, SignedHeaders=([\w;-]+),/
      const signed = key.exec(request.headers.authorization ?? '')?.[1]?.split(';')
      if (signed === undefined || (request.headers.range !== undefined && !signed.includes('range'))) {
        response.writeHead(403).end()
        return true
      }
      if (!path.endsWith('.gguf')) return false
      response.writeHead(307, { location: new URL(request.url!, elsewhere.url).href }).end()
      return true
    })
    const file = join(temporaryFolder(), 'keys')
    writeFileSync(file, `[default]\n${KEY}`, { mode: 0o600 })
    const webseed = { [bucket.url]: { region: 'eu-north-1', credentials_file: file } }
    const swarm = { dht: false, peer_addr: '127.0.0.1:0', fill_timeout: 60, seed_on_import: true }
    const node = await Node.start({ more: { fileConfig: { swarm, webseed } } })
    // both named by the user: the other address may be a private one, too
    const job = await node.importBt(pinned(share, { webseeds: [bucket.url, elsewhere.url], peers: [], as: 'me/model' }))
    expect(job.error).toBeUndefined()
    await node.expectWhole(share.manifestDigest)
    expect(seen.filter(([path]) => kindOf(path) === 'file').length).toBeGreaterThan(0)
    expect(seen.filter(([, authorization]) => authorization !== undefined)).toEqual([])
    expect((await node.share(share.manifestDigest)).announced).toBe(false)
    expect((await node.client.models()).namespaces[0]!.members[0]).toMatchObject({ restricted: true })
    const told = JSON.stringify([job, await node.client.status()])
    for (const secret of ['AKIAEXAMPLE', 'hush']) expect(told).not.toContain(secret)
  })

  test('a manifest that came with a key is withheld, even if all its blobs were here', async () => {
    const seed = await Node.start()
    const files = { 'model-q8_0.gguf': weights(100_000, 81), 'config.json': '{"model_type":"llama"}' }
    const share = modelAlone(await seed.publish({ ...files, LICENSE: 'Do as you like.' }))
    const bucket = await startWebseed(await contentOf(share))
    await seed.stop()
    const file = join(temporaryFolder(), 'keys')
    writeFileSync(file, `[default]\n${KEY}`, { mode: 0o600 })
    const swarm = { dht: false, peer_addr: '127.0.0.1:0' }
    const node = await Node.start({
      more: { fileConfig: { swarm, webseed: { [bucket.url]: { credentials_file: file } } } }
    })
    await node.importFiles(files, 'me/own')
    expect(await node.importBt(pinned(share, { webseeds: [bucket.url], peers: [] }))).toMatchObject({ state: 'done' })
    expect(bucket.requests.filter((path) => kindOf(path) === 'file')).toEqual([])
    const { provenance } = (await node.running.context.artifacts.read(share.manifestDigest as Sha256Digest))!
    expect(provenance).toMatchObject({ access: 'restricted', by: 'webseed-key' })
  })

  test('names the cause: no key, or a wrong clock', async () => {
    const seed = await Node.start()
    const share = modelAlone(await seed.publish())
    await seed.stop()
    let date = new Date(systemClock.now())
    const bucket = await startWebseed(new Map(), (_path, _request, response) => {
      response.writeHead(403, { date: date.toUTCString() }).end()
      return true
    })
    const file = join(temporaryFolder(), 'keys')
    writeFileSync(file, `[default]\n${KEY}`, { mode: 0o600 })
    const swarm = { dht: false, peer_addr: '127.0.0.1:0' }
    const node = await Node.start({
      more: { fileConfig: { swarm, webseed: { [bucket.url]: { credentials_file: file } } } }
    })
    const failure = async (): Promise<string> => {
      const { error } = await node.importBt(pinned(share, { webseeds: [bucket.url], peers: [] }))
      expect(error?.code).toBe('E_SOURCE_UNAVAILABLE')
      return error!.message
    }
    expect(await failure()).toContain('key')
    date = new Date(systemClock.now() - 3_600_000)
    expect(await failure()).toContain('clock')
    chmodSync(file, 0o644)
    const closed = await failure()
    expect(closed).toContain('its key cannot be used')
    expect(closed).not.toContain(file)
    await expect(
      Node.start({ more: { fileConfig: { swarm, webseed: { [bucket.url]: { credentials_file: file } } } } })
    ).rejects.toBeInstanceOf(ConfigError)
  })
})

describe('a front without a key that redirects to a private bucket', () => {
  /** The front says where everything is, and signs nothing; what lies below the model's name in the bucket wants a key. */
  async function frontOf(share: ShareResult, content: ReadonlyMap<string, Buffer>, opens?: Promise<void>) {
    let signed = 0
    const bucket = await startWebseed(
      content,
      (_path, request, response) => {
        if (request.headers.authorization === undefined) {
          response.writeHead(403).end()
          return true
        }
        signed++
        return false
      },
      opens
    )
    const front = await startWebseed(content, (path, request, response) => {
      if (kindOf(path) !== 'file') return false
      response.writeHead(307, { location: new URL(request.url!, bucket.url).href }).end()
      return true
    })
    const file = join(temporaryFolder(), 'keys')
    writeFileSync(file, `[default]\n${KEY}`, { mode: 0o600 })
    const webseed = { [`${bucket.url}${share.name}/`]: { credentials_file: file } }
    const swarm = { dht: false, peer_addr: '127.0.0.1:0', fill_timeout: 60, seed_on_import: true }
    // an address of the bucket without a key: else a redirect to this machine would not be followed
    const hints = { webseeds: [front.url, `${bucket.url}nothing/`], peers: [], as: 'me/model' }
    return { hints, more: { fileConfig: { swarm, webseed } }, signed: () => signed }
  }

  const heldBack = async (node: Node, share: ShareResult): Promise<boolean> =>
    (await node.client.status()).swarm.heldBack.some(({ manifestDigest }) => manifestDigest === share.manifestDigest)

  test('a model fetched with a signature is withheld, also after a restart', async () => {
    const seed = await Node.start()
    const share = modelAlone(await seed.publish())
    const content = await contentOf(share)
    await seed.stop()
    const { hints, more, signed } = await frontOf(share, content)
    const node = await Node.start({ more })
    const job = await node.importBt(pinned(share, hints))
    expect(job.error).toBeUndefined()
    expect(signed()).toBeGreaterThan(0)
    await node.expectWhole(share.manifestDigest)
    expect([await heldBack(node, share), (await node.share(share.manifestDigest)).announced]).toEqual([true, false])
    await node.stop()
    const again = await Node.start({ folder: node.folder, more })
    await again.verified()
    expect([await heldBack(again, share), (await again.share(share.manifestDigest)).announced]).toEqual([true, false])
    expect((await again.client.models()).namespaces[0]!.members[0]).toMatchObject({ restricted: true })
  })

  test('is withheld before the first signed byte, and stays so if others serve the rest', async () => {
    const seed = await Node.start()
    const share = modelAlone(await seed.publish())
    const opens = Promise.withResolvers<void>()
    onTestFinished(() => opens.resolve())
    const { hints, more } = await frontOf(share, await contentOf(share), opens.promise)
    const node = await Node.start({ more })
    const { artifacts } = node.running.context
    await node.client.importBt(pinned(share, hints))
    const access = async (): Promise<string | undefined> =>
      (await artifacts.read(share.manifestDigest as Sha256Digest))?.provenance.access
    await vi.waitUntil(async () => (await access()) === 'restricted', { timeout: 100_000 })
    await node.stop()
    const again = await Node.start({ folder: node.folder })
    expect((await again.importBt(pinned(share, { as: 'me/model' }))).error).toBeUndefined()
    expect((await again.share(share.manifestDigest)).announced).toBe(false)
  })
})
