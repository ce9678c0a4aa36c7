// The answers of the S3 mirror, and who gets them (spec add.58).
import { createHash } from 'node:crypto'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Inventory } from '@svc/client/protocol'
import { describe, expect, test } from 'vitest'
import { mergeConfig } from '../../src/config/config.ts'
import { sharedByFile, type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, MODEL, writeFiles } from '../support/models.ts'
import { askS3, inMinutes, KEY, presigned, type S3Answer, s3Of, signed } from './s3-client.ts'

const WEIGHTS = gguf(300_000, 4)
const SHA256 = createHash('sha256').update(WEIGHTS).digest()
const OBJECT = '/models/acme/tiny/q4_0/tiny-q4_0.gguf'

async function daemonWith(mirror: object, cleanUp?: (work: () => void | Promise<void>) => void): Promise<TestDaemon> {
  const folder = temporaryFolder(cleanUp)
  const file = { swarm: { enabled: false }, mirror: { s3_addr: '127.0.0.1:0', ...mirror } }
  return testDaemon({ folder, config: mergeConfig(file, { root: join(folder, 'root') }, {}) }, cleanUp)
}

async function withModels(mirror = {}, cleanUp?: (work: () => void | Promise<void>) => void): Promise<TestDaemon> {
  const daemon = await daemonWith(mirror, cleanUp)
  const [q4, q8, secret] = ['tiny-q4_0.gguf', 'tiny-q8_0.gguf', 'mine-q8_0.gguf'].map((name) =>
    join(daemon.folder, name)
  )
  writeFileSync(q4!, WEIGHTS)
  writeFileSync(q8!, gguf(5_000, 5))
  writeFileSync(secret!, gguf(6_000, 6))
  await daemon.import([q4!, q8!], 'acme/tiny')
  await daemon.import([secret!], 'acme/mine')
  await daemon.call('PUT', '/v1/private', { body: { ref: 'svc:///acme/mine:q8_0', private: true } })
  const folder = temporaryFolder(cleanUp)
  writeFiles(folder, MODEL)
  await daemon.import([folder], 'other/many')
  return daemon
}

const open = sharedByFile((cleanUp) => withModels({}, cleanUp))
const ask = async (path: string, asked?: Parameters<ReturnType<typeof s3Of>>[1]): Promise<S3Answer> =>
  s3Of((await open()).socketPath)(path, asked)
const all = (text: string, tag: string): string[] =>
  [...text.matchAll(new RegExp(`<${tag}>([^<]*)</${tag}>`, 'g'))].map(([, value]) => value!)

describe('the bucket', () => {
  test('has a name, and is found', async () => {
    expect(all((await ask('/')).text, 'Name')).toEqual(['models'])
    expect((await ask('/models', { method: 'HEAD' })).status).toBe(200)
    expect((await ask('/models/', { method: 'HEAD' })).headers['x-amz-bucket-region']).toBe('us-east-1')
    expect((await ask('/models?location')).text).toContain('LocationConstraint')
    expect((await ask('/other?list-type=2')).code).toBe('NoSuchBucket')
    expect((await ask('/other', { method: 'HEAD' })).status).toBe(404)
  })

  test('lists names as folders, and their files with sizes', async () => {
    const folders = async (prefix: string): Promise<string[]> => {
      const { text } = await ask(`/models?list-type=2&delimiter=/&prefix=${prefix}`)
      return [...text.matchAll(/<CommonPrefixes><Prefix>([^<]*)/g)].map(([, folder]) => folder!)
    }
    expect(await folders('')).toEqual(['acme/', 'other/'])
    expect(await folders('acme/')).toEqual(['acme/tiny/'])
    expect(await folders('acme/tiny/')).toEqual(['acme/tiny/q4_0/', 'acme/tiny/q8_0/'])
    const { text } = await ask('/models?list-type=2&prefix=acme/')
    expect(all(text, 'Key')).toEqual(['acme/tiny/q4_0/tiny-q4_0.gguf', 'acme/tiny/q8_0/tiny-q8_0.gguf'])
    expect(all(text, 'Size')).toEqual([`${WEIGHTS.length}`, '5024'])
    expect(all(text, 'ETag')[0]).toBe(`&quot;${SHA256.toString('hex')}-1&quot;`)
  })

  test('lists unpacked files and folders of a model of many files', async () => {
    const keys = all((await ask('/models?list-type=2&prefix=other/many/bf16/')).text, 'Key')
    expect(keys).toContain('other/many/bf16/config.json')
    expect(keys).toContain('other/many/bf16/tokenizer.json')
    expect(keys).toEqual([...keys].sort())
    const { status, body } = await ask('/models/other/many/bf16/tokenizer.json')
    expect([status, body.toString()]).toEqual([200, '{"version":"1.0"}'])
  })
})

describe('an object', () => {
  test('is sent whole, with its checksums', async () => {
    const { status, headers, body } = await ask(OBJECT, { headers: { 'x-amz-checksum-mode': 'ENABLED' } })
    expect([status, body.equals(WEIGHTS)]).toEqual([200, true])
    expect(headers).toMatchObject({
      'accept-ranges': 'bytes',
      'content-length': `${WEIGHTS.length}`,
      etag: `"${SHA256.toString('hex')}-1"`,
      'x-amz-checksum-sha256': SHA256.toString('base64')
    })
    expect(Date.parse(headers['last-modified']!)).toBeGreaterThan(0)
    expect((await ask(OBJECT)).headers['x-amz-checksum-sha256']).toBeUndefined()
    const head = await ask(OBJECT, { method: 'HEAD', headers: { 'x-amz-checksum-mode': 'ENABLED' } })
    expect([head.status, head.body.length, head.headers['x-amz-checksum-sha256']]).toEqual([
      200,
      0,
      SHA256.toString('base64')
    ])
  })

  test.each([
    ['bytes=0-0', 206, 0, 1],
    ['bytes=5-', 206, 5, WEIGHTS.length],
    ['bytes=-7', 206, WEIGHTS.length - 7, WEIGHTS.length],
    ['bytes=100-99999999999999999999', 206, 100, WEIGHTS.length],
    [`bytes=-${WEIGHTS.length * 2}`, 206, 0, WEIGHTS.length],
    ['bytes=1-2,4-5', 200, 0, WEIGHTS.length],
    ['items=1-2', 200, 0, WEIGHTS.length],
    [`bytes=${WEIGHTS.length}-`, 416, 0, 0],
    ['bytes=-0', 416, 0, 0],
    ['bytes=9-3', 416, 0, 0]
  ])('range %s: %i', async (range, status, start, end) => {
    const answer = await ask(OBJECT, { headers: { range, 'x-amz-checksum-mode': 'ENABLED' } })
    expect(answer.status).toBe(status)
    if (status === 416) expect(answer.code).toBe('InvalidRange')
    else expect(answer.body.equals(WEIGHTS.subarray(start, end))).toBe(true)
    // the sum of a part is not known
    expect(answer.headers['x-amz-checksum-sha256'] !== undefined).toBe(status === 200)
  })

  test('obeys conditional headers', async () => {
    const etag = `"${SHA256.toString('hex')}-1"`
    const [before, after] = ['Thu, 01 Jan 2015 00:00:00 GMT', 'Tue, 01 Jan 2199 00:00:00 GMT']
    for (const [headers, status] of [
      [{ 'if-match': etag }, 200],
      [{ 'if-match': '"other"' }, 412],
      [{ 'if-none-match': etag }, 304],
      [{ 'if-none-match': '"other"' }, 200],
      [{ 'if-modified-since': before }, 200],
      [{ 'if-modified-since': after }, 304],
      [{ 'if-modified-since': 'yesterday' }, 200],
      [{ 'if-unmodified-since': before }, 412],
      [{ 'if-unmodified-since': after }, 200],
      // a tag says more than a time
      [{ 'if-match': etag, 'if-unmodified-since': before }, 200],
      [{ 'if-none-match': '"other"', 'if-modified-since': after }, 200]
    ] as const)
      expect([headers, (await ask(OBJECT, { headers })).status]).toEqual([headers, status])
    expect((await ask(OBJECT, { headers: { 'if-match': '"other"' } })).code).toBe('PreconditionFailed')
  })

  test.each([
    '/models/acme/tiny/q4_0/',
    '/models/acme/tiny/q4_0/nothing',
    '/models/acme/tiny/q4_0/../q8_0/tiny-q8_0.gguf',
    '/models/acme/tiny/q4_0/%2e%2e/q8_0/tiny-q8_0.gguf',
    '/models/acme//tiny/q4_0/tiny-q4_0.gguf',
    '/models/ACME/tiny/q4_0/tiny-q4_0.gguf',
    '/models/acme/tiny/q4_0/tiny-q4_0.gguf%00',
    '/models/__proto__/x/y/z',
    '/models/acme/mine/q8_0/mine-q8_0.gguf',
    '/models/%F0%9F%98%80'
  ])('%s is not there', async (path) => {
    const answer = await ask(path)
    expect([answer.status, answer.code]).toEqual([404, 'NoSuchKey'])
  })

  test('with a malformed address is refused', async () => {
    expect((await ask('/models/%ff')).code).toBe('InvalidURI')
    expect((await ask('/models/%')).code).toBe('InvalidURI')
  })
})

test('a withheld model disappears from all listings at once', async () => {
  const daemon = await withModels()
  const s3 = s3Of(daemon.socketPath)
  const listed = async (): Promise<string> => (await s3('/models?list-type=2&prefix=acme/')).text
  expect(await listed()).not.toContain('mine')
  const body = (isPrivate: boolean) => ({ ref: 'svc:///acme/tiny:q4_0', private: isPrivate })
  expect((await s3(OBJECT)).status).toBe(200)
  await daemon.call('PUT', '/v1/private', { body: body(true) })
  expect(all(await listed(), 'Key')).toEqual(['acme/tiny/q8_0/tiny-q8_0.gguf'])
  const [absent, hidden] = [await s3('/models/acme/tiny/none/x'), await s3(OBJECT)]
  expect([hidden.status, hidden.text]).toEqual([absent.status, absent.text])
  await daemon.call('PUT', '/v1/private', { body: body(false) })
  expect((await s3(OBJECT)).status).toBe(200)
})

describe('only reads are answered', () => {
  test.each(['PUT', 'POST', 'DELETE', 'PATCH'])('%s', async (method) => {
    const answer = await ask(OBJECT, { method })
    expect([answer.status, answer.code]).toEqual([405, 'MethodNotAllowed'])
  })

  test.each(['acl', 'uploads', 'versioning', 'tagging', 'policy', 'versions', 'versionId=x', 'torrent'])(
    '?%s',
    async (query) => {
      expect((await ask(`${OBJECT}?${query}`)).code).toBe('NotImplemented')
      expect((await ask(`/models?${query}`)).code).toBe('NotImplemented')
    }
  )

  test("requests of web pages and for other host names are refused with S3's errors", async () => {
    expect((await ask(OBJECT, { headers: { origin: 'http://evil.example' } })).code).toBe('AccessDenied')
    expect((await ask(OBJECT, { headers: { host: 'models.evil.example' } })).status).toBe(421)
  })

  test('a listing refuses malformed parameters', async () => {
    for (const query of [
      'list-type=1',
      'list-type=2&max-keys=x',
      'list-type=2&max-keys=-1',
      'list-type=2&encoding-type=hex',
      'list-type=2&continuation-token=',
      'list-type=2&continuation-token=%00%ff',
      'list-type=2&continuation-token=xyz'
    ])
      expect([query, (await ask(`/models?${query}`)).code]).toEqual([query, 'InvalidArgument'])
    expect((await ask(`/models?list-type=2&prefix=${'x'.repeat(9_000)}`)).status).toBe(404)
  })

  test('a prefix is plain text, with any characters', async () => {
    for (const prefix of ['<&>"\'', ']]>', '\u0001\u0008\ufffe', '😀', '%', '+ ', '../', '\0', "';--", '\r\n']) {
      const { status, text } = await ask(`/models?list-type=2&prefix=${encodeURIComponent(prefix)}`)
      expect([prefix, status]).toEqual([prefix, 200])
      expect(text.replace(/<\/?[A-Za-z]+>|<\?xml[^>]*>|<ListBucketResult xmlns="[^"]*">/g, '')).not.toMatch(/[<>]/)
      expect(text).not.toMatch(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/)
      const encoded = await ask(`/models?list-type=2&encoding-type=url&prefix=${encodeURIComponent(prefix)}`)
      expect(decodeURIComponent(all(encoded.text, 'Prefix')[0]!)).toBe(prefix)
    }
  })
})

describe('with keys', () => {
  const locked = sharedByFile(async (cleanUp) => {
    const path = join(temporaryFolder(cleanUp), 'keys')
    writeFileSync(path, `# readers\n${KEY.id}:${KEY.secret}\n`, { mode: 0o600 })
    const daemon = await withModels({ s3_keys: path }, cleanUp)
    const { s3MirrorAddress: host } = JSON.parse(readFileSync(join(daemon.folder, 'runtime.json'), 'utf8'))
    return { daemon, host: host as string, path }
  })
  const codeOf = async (path: string, headers: Record<string, string>, method = 'GET'): Promise<unknown> => {
    const { status, code } = await askS3((await locked()).host, path, { headers, method })
    return code ?? status
  }
  const LIST = '/models?list-type=2&prefix=acme%2Ftiny%2F&delimiter=%2F'

  test('a signed request is answered, and no other', async () => {
    const { host } = await locked()
    expect(await codeOf(OBJECT, {})).toBe('AccessDenied')
    expect(await codeOf('/', {})).toBe('AccessDenied')
    for (const path of [OBJECT, LIST, '/', '/models?location']) expect(await codeOf(path, signed(host, path))).toBe(200)
    expect(await codeOf(OBJECT, signed(host, OBJECT, { method: 'HEAD' }), 'HEAD')).toBe(200)
    expect(await codeOf(OBJECT, signed(host, OBJECT, { headers: { range: 'bytes=0-1' } }))).toBe(206)
    // headers that do not affect access need not be signed
    expect(await codeOf(OBJECT, signed(host, OBJECT, { more: { range: 'bytes=0-1' } }))).toBe(206)
  })

  test('a read with a key counts as use for the quota; a read of an open bucket does not', async () => {
    const { daemon, host } = await locked()
    const usedAt = async (of: TestDaemon): Promise<unknown> => {
      const { namespaces } = (await of.get('/v1/models')).body as Inventory
      const { members } = namespaces.find(({ ns, name }) => `${ns}/${name}` === 'acme/tiny')!
      return members.find(({ quant }) => quant === 'q4_0')!.lastUsedAt
    }
    await codeOf(OBJECT, signed(host, OBJECT))
    expect(await usedAt(daemon)).toEqual(expect.any(String))
    expect((await ask(OBJECT)).status).toBe(200)
    expect(await usedAt(await open())).toBeUndefined()
  })

  test('a signature is valid for one request', async () => {
    const { host } = await locked()
    const headers = signed(host, OBJECT)
    for (const [path, method] of [
      [LIST, 'GET'],
      [`${OBJECT}?x=1`, 'GET'],
      [OBJECT, 'HEAD']
    ] as const)
      expect([path, (await askS3(host, path, { headers, method })).status]).toEqual([path, 403])
    expect(await codeOf(OBJECT, { ...headers, 'x-amz-security-token': 'mine' })).toBe('AccessDenied')
    expect(await codeOf(OBJECT, { ...headers, 'x-amz-content-sha256': '0'.repeat(64) })).toBe('SignatureDoesNotMatch')
    const of = (what: RegExp, by: string): Record<string, string> => ({
      ...headers,
      authorization: headers.authorization!.replace(what, by)
    })
    expect(await codeOf(OBJECT, of(/host;/, ''))).toBe('AccessDenied')
    expect(await codeOf(OBJECT, of(/host;/, 'host;range;'))).toBe('AccessDenied')
    expect(await codeOf(OBJECT, of(/host;/, 'host;__proto__;'))).toBe('AccessDenied')
    expect(await codeOf(OBJECT, of(/eu-north-1/, 'us-east-1'))).toBe('SignatureDoesNotMatch')
    expect(await codeOf(OBJECT, of(/\/s3\//, '/iam/'))).toBe('AuthorizationHeaderMalformed')
    expect(await codeOf(OBJECT, of(/.$/, 'x'))).toBe('AuthorizationHeaderMalformed')
    expect(await codeOf(OBJECT, { ...headers, authorization: `Basic ${'x'.repeat(2_000)}` })).toBe(
      'AuthorizationHeaderMalformed'
    )
  })

  test('another key, and another secret, are refused', async () => {
    const { host } = await locked()
    const key = (id: string, secret: string) => signed(host, OBJECT, { key: { id, secret } })
    expect(await codeOf(OBJECT, key('NOBODY', KEY.secret))).toBe('InvalidAccessKeyId')
    expect(await codeOf(OBJECT, key('__proto__', KEY.secret))).toBe('InvalidAccessKeyId')
    expect(await codeOf(OBJECT, key(KEY.id, 'another-secret'))).toBe('SignatureDoesNotMatch')
  })

  test('clocks may differ by a quarter of an hour', async () => {
    const { host } = await locked()
    for (const [minutes, code] of [
      [14, 200],
      [-14, 200],
      [16, 'RequestTimeTooSkewed'],
      [-16, 'RequestTimeTooSkewed']
    ] as const)
      expect([minutes, await codeOf(OBJECT, signed(host, OBJECT, { at: inMinutes(minutes) }))]).toEqual([minutes, code])
  })

  test('a signed address expires', async () => {
    const { host } = await locked()
    const query = 'AuthorizationQueryParametersError'
    for (const [options, code] of [
      [{}, 200],
      [{ at: inMinutes(-60), expires: '7200' }, 200],
      [{ at: inMinutes(-60), expires: '3000' }, 'AccessDenied'],
      [{ at: inMinutes(60) }, 'RequestTimeTooSkewed'],
      [{ expires: '604800' }, 200],
      [{ expires: '604801' }, query],
      [{ expires: '9'.repeat(400) }, query],
      [{ expires: '1e9' }, query],
      [{ expires: '0' }, query],
      [{ expires: '-1' }, query],
      [{ key: { ...KEY, secret: 'another-secret' } }, 'SignatureDoesNotMatch']
    ] as const)
      expect([options, await codeOf(presigned(host, OBJECT, options), {})]).toEqual([options, code])
    const url = presigned(host, OBJECT)
    expect(await codeOf(`${url}&X-Amz-Expires=604800`, {})).toBe(query)
    expect(await codeOf(url.replace('X-Amz-Expires=300', 'X-Amz-Expires=3000'), {})).toBe('SignatureDoesNotMatch')
    expect(await codeOf(url.replace('tiny-q4_0', 'tiny-q8_0'), {})).toBe('SignatureDoesNotMatch')
    expect(await codeOf(url, {}, 'HEAD')).toBe(403)
    expect(await codeOf(`${OBJECT}?AWSAccessKeyId=${KEY.id}&Signature=x&Expires=1`, {})).toBe('InvalidRequest')
    expect(await codeOf(url, signed(host, url))).toBe('AccessDenied')
    expect(await codeOf(url, { 'x-amz-checksum-mode': 'ENABLED' })).toBe('AccessDenied')
  })

  test('keys can be replaced while the daemon runs; a file that others can read disables access', async () => {
    const { host, path } = await locked()
    const was = readFileSync(path, 'utf8')
    const next = { id: 'NEXT', secret: 'the-secret-of-next-week' }
    writeFileSync(path, `${next.id}:${next.secret}\n`)
    expect(await codeOf(OBJECT, signed(host, OBJECT))).toBe('InvalidAccessKeyId')
    expect(await codeOf(OBJECT, signed(host, OBJECT, { key: next }))).toBe(200)
    chmodSync(path, 0o644)
    expect(await codeOf(OBJECT, signed(host, OBJECT, { key: next }))).toBe('InternalError')
    chmodSync(path, 0o600)
    writeFileSync(path, was)
  })
})

test.each([
  ['a line without a secret', 'READER\n'],
  ['a short secret', 'READER:short\n'],
  ['an ID twice', 'READER:long-enough\nREADER:also-long-enough\n'],
  ['no key', '# nobody\n'],
  ['a slash in an ID', 'A/B:long-enough\n']
])('a file of keys with %s is refused at the start, without quoting it', async (_what, text) => {
  const path = join(temporaryFolder(), 'keys')
  writeFileSync(path, text, { mode: 0o600 })
  const error = await daemonWith({ s3_keys: path }).catch((thrown: Error) => thrown)
  expect(error).toMatchObject({ name: 'ConfigError', message: expect.stringContaining('s3_keys') })
  expect((error as Error).message).not.toMatch(/long-enough|short|READER/)
})
